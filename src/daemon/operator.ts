import { authorOf } from '../bus/index.ts';
import { type Author, agentsName, type Roster } from '../conversation/index.ts';
import { ParleyError } from '../kernel/index.ts';

/** Who says nothing about himself: the plain subjects are the operator's. */
const OPERATOR = 'operator';

interface Actor {
  readonly publisher?: string | undefined;
  readonly author?: { readonly name: string } | undefined;
}

/**
 * Who steers or answers, as the log names him: like the author of a post, a publisher or a person at it, and never with
 * the name of an agent (L17).
 */
export function operatorOf({ publisher = OPERATOR, author }: Actor, roster: Roster): Author {
  const decoded = authorOf(publisher, author?.name);
  if (!decoded.ok) {
    const { code, message, hint } = decoded.refusal;
    throw new ParleyError(code, message, { hint });
  }
  const { id, name } = decoded.value;
  const taken = agentsName(publisher, name, roster);
  if (taken !== null) throw new ParleyError(taken.code, taken.message, { hint: taken.hint });
  return { kind: 'person', id, name };
}
