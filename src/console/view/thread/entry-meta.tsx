import { clockTime, fullTime } from '../../model/format.ts';
import { opened } from '../../state/conversation.ts';
import { linkTo, type Panel } from '../../state/route.ts';
import { isOperator } from '../../state/session.ts';
import { CopyButton } from '../parts/copy-button.tsx';

/** When an entry was appended, and its index, which is its link. */
export function EntryTime({ index, at }: { readonly index: number; readonly at: string }) {
  return (
    <>
      <time dateTime={at} title={fullTime(at)}>
        {clockTime(at)}
      </time>
      <a
        class="number"
        href={linkTo.entry(opened.value?.id ?? '', index)}
        aria-label={`Entry ${index}`}
        title={`Entry ${index}`}
      >
        {index}
      </a>
    </>
  );
}

interface ActionsProps {
  readonly index: number;
  readonly author: string;
  readonly text: string;
  readonly isAnswer: boolean;
}

/** What can be done with a message. */
export function MessageActions({ index, author, text, isAnswer }: ActionsProps) {
  const id = opened.value?.id ?? '';
  const link = (kind: Panel['kind']) => linkTo.panel(id, { kind, index });
  const address = () => new URL(linkTo.entry(id, index), location.href).href;
  return (
    <span class="actions">
      {text !== '' && <CopyButton text={() => text} label={`Copy entry ${index}`} word="copy" />}
      <CopyButton text={address} label={`Copy the link to entry ${index}`} word="link" />
      {isOperator.value && (
        <a href={link('fork')} aria-label={`Fork from entry ${index}`} title="Fork from here">
          fork
        </a>
      )}
      {isAnswer && (
        <a
          class="why"
          href={link('why')}
          aria-label={`Why did ${author} say that?`}
          title="Why did it say that? (Enter)"
        >
          why?
        </a>
      )}
    </span>
  );
}
