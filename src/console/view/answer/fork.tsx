import { useState } from 'preact/hooks';
import { requests } from '../../api/requests.ts';
import { type ForkPoint, forkPoint } from '../../model/thread/turns.ts';
import { opened } from '../../state/conversation.ts';
import { openToWrite } from '../../state/jump.ts';
import { isOperator, sender } from '../../state/session.ts';
import { PanelForm } from './panel-form.tsx';

const OUTCOMES: Readonly<Record<ForkPoint['outcome'], string>> = {
  answers: 'Messages that have no answer at that entry are answered again in the copy.',
  aborts: 'The turn of this answer continues after that entry; in the copy it ends as aborted.',
  waits: 'The copy then waits for a message.',
};

const MOST_LETTERS = 128;

/** Asks for the id of the copy, shows a refusal, and opens the copy. */
export function Fork({ id, index }: { readonly id: string; readonly index: number }) {
  const { at, outcome } = forkPoint(opened.value?.thread.entries ?? [], index);
  const ending = `-${at}`;
  const [name, setName] = useState(`${id.slice(0, MOST_LETTERS - ending.length)}${ending}`);
  if (!isOperator.value) return <p class="muted aside">Your token may not fork a conversation.</p>;
  const fork = async () => {
    await requests.fork(id, { as: name.trim(), at, ...sender() });
    openToWrite(name.trim());
  };
  return (
    <PanelForm class="account panel-form" action="Fork" isDisabled={name.trim() === ''} onSubmit={fork}>
      <p>
        A new conversation begins with a copy of the entries 0 to {at}. This conversation does not change, and
        no tool runs again. {OUTCOMES[outcome]}
      </p>
      <label>
        Id of the new conversation
        <input
          required
          maxLength={MOST_LETTERS}
          spellcheck={false}
          autocomplete="off"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
    </PanelForm>
  );
}
