import { requests } from '../api/requests.ts';
import { refresh } from '../state/conversations.ts';
import { go, linkTo } from '../state/route.ts';
import { attempt, sender } from '../state/session.ts';
import { Composer } from './composer.tsx';
import { Icon } from './parts.tsx';

export function NewPage() {
  const begin = (content: string) =>
    attempt(async () => {
      const { conversation } = await requests.begin({ id: crypto.randomUUID(), content, ...sender() });
      void refresh();
      go(linkTo.conversation(conversation));
    });
  return (
    <main class="page new">
      <header class="head">
        <a class="button quiet back" href={linkTo.list} aria-label="Back to the list">
          <Icon name="back" />
        </a>
        <h2>New conversation</h2>
      </header>
      <div class="empty">
        <p>
          Say what it is about. Name an agent with @ to speak to it, or leave it to the daemon who answers.
        </p>
      </div>
      <Composer onPost={begin} place="" />
    </main>
  );
}
