import { useState } from 'preact/hooks';
import type { EntryOf, FeedbackValue } from '../../../conversation/index.ts';
import { requests } from '../../api/requests.ts';
import { nameOfAuthor, opened } from '../../state/conversation.ts';
import { attempt, mayPost, me, sender } from '../../state/session.ts';
import { Button, LinkButton, onSubmit, onText } from '../parts/controls.tsx';
import { Icon } from '../parts/parts.tsx';

/** Thumbs for an answer, and what people said about it. */

interface FeedbackProps {
  readonly index: number;
  readonly given: readonly EntryOf<'feedback'>[];
}

const LABELS = { up: 'Good answer', down: 'Bad answer' } as const;

const mine = (given: FeedbackProps['given']) => given.find(({ author }) => author.id === me.value);

const send = (index: number, value: FeedbackValue, note?: string) =>
  attempt(() =>
    requests.feedback(opened.value?.id ?? '', { index, value, ...(note && { note }), ...sender() }),
  );

/** The pressed one takes the thumb back. */
export function Thumbs({ index, given }: FeedbackProps) {
  if (!mayPost.value) return null;
  const now = mine(given)?.value;
  return (['up', 'down'] as const).map((value) => (
    <LinkButton
      key={value}
      aria-label={`${LABELS[value]}, entry ${index}`}
      aria-pressed={now === value}
      title={LABELS[value]}
      onClick={() => void send(index, now === value ? 'none' : value)}
    >
      <Icon name={value} />
    </LinkButton>
  ));
}

export function Feedback({ index, given }: FeedbackProps) {
  return given.map((one) => (
    <div key={one.author.id} class={`feedback ${one.value}`}>
      <Icon name={one.value === 'up' ? 'up' : 'down'} />
      <span class="unseen">{one.value === 'up' ? LABELS.up : LABELS.down}:</span>
      <bdi>{nameOfAuthor(one.author)}</bdi>
      {one.note !== undefined && <span dir="auto">{one.note}</span>}
      {one === mine(given) && mayPost.value && <Note key={one.id} index={index} of={one} />}
    </div>
  ));
}

function Note({ index, of }: { readonly index: number; readonly of: EntryOf<'feedback'> }) {
  const [text, setText] = useState<string | null>(null);
  if (text === null)
    return (
      <LinkButton onClick={() => setText(of.note ?? '')}>{of.note ? 'Edit note' : 'Add a note'}</LinkButton>
    );
  const save = async () => (await send(index, of.value, text.trim())) && setText(null);
  return (
    <form onSubmit={onSubmit(save)}>
      <input
        aria-label={`Note on entry ${index}`}
        placeholder="What was right or wrong?"
        maxLength={2_000}
        value={text}
        ref={(field) => field?.focus()}
        onInput={onText(setText)}
      />
      <button type="submit">Save</button>
      <Button class="quiet" onClick={() => setText(null)}>
        Cancel
      </Button>
    </form>
  );
}
