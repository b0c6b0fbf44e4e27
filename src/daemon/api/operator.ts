import { type ApiRequest, authorOf } from '../../bus/index.ts';
import { type Author, agentsName, type Roster } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

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
export function operatorOf(
  { publisher = OPERATOR, author }: Actor,
  roster: Roster,
  isBound: boolean,
): Author {
  const decoded = authorOf(publisher, author?.name, isBound);
  if (!decoded.ok) {
    const { code, message, hint } = decoded.refusal;
    throw new ParleyError(code, message, { hint });
  }
  const { id, name } = decoded.value;
  const taken = agentsName(decoded.value, roster);
  if (taken !== null) throw new ParleyError(taken.code, taken.message, { hint: taken.hint });
  return { kind: 'person', id, name };
}

/**
 * PERSON-5: whether the caller may sign with any name. An operator may, and so may whoever reaches a server that the
 * daemon manages; a token of HTTP binds the name that it has, or none.
 */
export function isNameBound(
  { publisher, name }: Pick<ApiRequest, 'publisher' | 'name'>,
  believesNames: boolean,
): boolean {
  return publisher === null || (name === undefined ? believesNames : name !== null);
}
