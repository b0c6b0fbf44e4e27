import type { RefObject } from 'preact';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { pretty } from '../../model/format.ts';

interface EditProps {
  readonly field: RefObject<HTMLTextAreaElement | null>;
  readonly edited: string;
  readonly setEdited: (text: string) => void;
  readonly onRequest: () => void;
}

/** Other arguments for a call that waits: texts in fields of their own, else JSON. */
export function EditArguments({ field, edited, setEdited, onRequest }: EditProps) {
  const given = parsed(edited);
  const isValid = Object.prototype.toString.call(given) === '[object Object]';
  const texts = isValid ? plainTexts(given as object) : null;
  return (
    <div class="edit-arguments">
      {texts === null ? (
        <label>
          New arguments
          <textarea
            ref={field}
            rows={6}
            value={edited}
            onInput={(event) => setEdited(event.currentTarget.value)}
          />
        </label>
      ) : (
        texts.map(([name, text], place) => (
          <label key={name}>
            New {name}
            <textarea
              ref={place === 0 ? field : undefined}
              rows={Math.min(text.split('\n').length, 12)}
              value={text}
              onInput={(event) => setEdited(withText(given as object, name, event.currentTarget.value))}
            />
          </label>
        ))
      )}
      <p class="muted">
        {isValid
          ? 'This call is denied, and the agent is asked for a new one with these arguments. The new call is judged again.'
          : 'This is not a JSON object.'}
      </p>
      <div class="buttons">
        <button type="button" disabled={!isValid} onClick={onRequest}>
          Request this call
        </button>
        <button type="button" class="quiet" onClick={() => setEdited('')}>
          Cancel
        </button>
      </div>
    </div>
  );
}

/** The arguments, if each is a text without hidden characters; null: they are edited as JSON, which shows those as escapes. */
function plainTexts(given: object): readonly (readonly [string, string])[] | null {
  const all = Object.entries(given);
  const isPlain = ([name, value]: readonly [string, unknown]) =>
    typeof value === 'string' && escapeHidden(name + value) === name + value;
  return all.length > 0 && all.every(isPlain) ? all : null;
}

const withText = (given: object, name: string, text: string): string =>
  escapeHidden(pretty(JSON.stringify({ ...given, [name]: text })));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** An approval is bound to the arguments, so the agent makes a new call, which is judged again. */
export function requestOf(tool: string, edited: string): string {
  return `call ${tool} again with these arguments instead: ${JSON.stringify(JSON.parse(edited))}`;
}
