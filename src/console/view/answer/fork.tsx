import { useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import { type ForkPoint, forkPoint } from '../../model/thread/turns.ts';
import { opened } from '../../state/conversation.ts';
import { titleOf } from '../../state/conversations.ts';
import { openToWrite } from '../../state/jump.ts';
import { isOperator, sender } from '../../state/session.ts';
import { PanelForm } from './panel-form.tsx';

const OUTCOMES: Readonly<Record<ForkPoint['outcome'], string>> = {
  answers: 'Messages that have no answer at that entry are answered again in the copy.',
  aborts: 'The turn of this answer continues after that entry; in the copy it ends as aborted.',
  waits: 'The copy then waits for a message.',
};

const LONGEST_TITLE = 200;
const ENDING = ' (copy)';

/** Asks for the title of the copy, shows a refusal, and opens the copy. */
export function Fork({ id, index }: { readonly id: string; readonly index: number }) {
  const { at, outcome } = forkPoint(opened.value?.thread.entries ?? [], index);
  const [as] = useState(() => crypto.randomUUID().replaceAll('-', '')); // kept: a repeated fork continues the first one
  const original = titleOf(id) ?? opened.value?.thread.title ?? id;
  const [title, setTitle] = useState(`${original.slice(0, LONGEST_TITLE - ENDING.length)}${ENDING}`);
  if (!isOperator.value) return <p class="muted aside">Your token may not fork a conversation.</p>;
  const fork = async () => {
    await requests.fork(id, { as, at, ...sender() });
    await requests.label(as, { title: title.trim(), ...sender() });
    openToWrite(as);
  };
  return (
    <PanelForm class="account panel-form" action="Fork" isDisabled={title.trim() === ''} onSubmit={fork}>
      <p>
        A new conversation begins with a copy of the entries 0 to {at}. This conversation does not change, and
        no tool runs again. {OUTCOMES[outcome]}
      </p>
      <label>
        Title of the new conversation
        <input
          required
          maxLength={LONGEST_TITLE}
          autocomplete="off"
          value={title}
          onInput={(event) => setTitle(event.currentTarget.value)}
        />
      </label>
    </PanelForm>
  );
}
