import { useState } from 'preact/hooks';
import { RequestError, requests } from '../../api/requests.ts';
import type { DeadLetter } from '../../model/answers.ts';
import { linkTo } from '../../state/route.ts';
import { attempt, isOperator } from '../../state/session.ts';
import { MOST_LETTERS, refresh, type System } from '../../state/system.ts';
import { Button, Confirm, QuietButton } from '../parts/controls.tsx';
import { When } from '../parts/parts.tsx';
import { Scrolled, VisibleText } from '../parts/text.tsx';

/** Posts that the daemon refused, with the reason. */
export function Letters({ letters, status: { deadLetters } }: System) {
  const more = Math.max(0, (deadLetters ?? 0) - letters.length);
  if (letters.length === 0) return null;
  return (
    <section aria-labelledby="letters">
      <h3 id="letters">Refused posts</h3>
      <ul class="letters">
        {letters.map((letter) => (
          <Letter key={letter.sequence} letter={letter} />
        ))}
      </ul>
      {letters.length >= MOST_LETTERS && more > 0 && (
        <p class="muted">
          {more} older ones: <code>parley dead ls</code> lists all.
        </p>
      )}
    </section>
  );
}

function Letter({ letter }: { readonly letter: DeadLetter }) {
  const { sequence, at, publisher, conversation, code, reason, hint } = letter;
  const [text, setText] = useState<string | null>(null);
  const read = () => attempt(async () => setText((await requests.deadLetter(sequence)).original));
  return (
    <li>
      <p class="by">
        <span class="state wrong">{code}</span>
        <span>
          <VisibleText text={publisher} /> to{' '}
          <a href={linkTo.conversation(conversation)}>
            <VisibleText text={conversation} />
          </a>
        </span>
        <When at={at} />
      </p>
      <p>
        <VisibleText text={reason} />
      </p>
      {hint && <p class="muted">{hint}</p>}
      {text !== null && (
        <Scrolled class="persona">
          <VisibleText text={text} />
        </Scrolled>
      )}
      <div class="buttons">
        {text === null && <QuietButton onClick={() => void read()}>Show the post</QuietButton>}
        {isOperator.value && <Actions {...letter} />}
      </div>
    </li>
  );
}

/** Codes of posts that no retry can append. */
const FINAL = ['MALFORMED_JSON', 'INVALID_UTF8', 'INVALID_NAME', 'UNREADABLE', 'SKIPPED'];
/** Codes of a retry that was refused for good: the list does not say that a letter is of many posts. */
const NOT_RETRYABLE = ['NOT_RETRYABLE', 'DEAD_LETTER_CUT'];

function Actions({ sequence, code, truncated }: DeadLetter) {
  const [isAsked, ask] = useState(false);
  const [isFinal, setFinal] = useState(truncated === true || FINAL.includes(code));
  const act = async (action: () => Promise<unknown>) => {
    if (await attempt(action)) await refresh().catch(() => undefined);
  };
  const retry = () =>
    requests.retryLetter(sequence).catch((error) => {
      if (error instanceof RequestError && NOT_RETRYABLE.includes(error.code)) setFinal(true);
      throw error;
    });
  const discard = () => void act(() => requests.discardLetter(sequence));
  if (isAsked) return <Confirm action="Discard for good" onConfirm={discard} onCancel={() => ask(false)} />;
  return (
    <>
      {isFinal ? (
        <span class="muted">It cannot be posted again as it is.</span>
      ) : (
        <Button onClick={() => void act(retry)}>Post again</Button>
      )}
      <QuietButton onClick={() => ask(true)}>Discard</QuietButton>
    </>
  );
}
