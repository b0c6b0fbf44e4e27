import { escapeHidden } from './hidden.ts';
import { cut } from './text.ts';

/** The fields used here of an issue of a schema library; the kernel imports no such library. */
interface SchemaIssue {
  readonly code?: string | undefined;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly expected?: string;
  readonly values?: readonly unknown[];
  readonly options?: readonly unknown[];
  readonly origin?: string;
  readonly minimum?: unknown;
  readonly maximum?: unknown;
  readonly inclusive?: boolean | undefined;
  readonly issues?: readonly { readonly message: string }[];
  readonly errors?: readonly (readonly SchemaIssue[])[];
  readonly keys?: readonly string[];
  readonly pattern?: string | undefined;
}

type Names = Readonly<Record<string, string>>;

const NAMES_OF_TYPES: Names = {
  int: 'a whole number',
  number: 'a number',
  string: 'a text',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
};

/** How the library's own messages begin. Another message is of the schema itself, and is kept. */
const LIBRARY_TEXT = /^(?:Invalid |Too (?:small|big)|Unrecognized key)|^Invalid$/;
/** Unknown fields that a refusal lists, at most. */
const MAX_KEYS = 5;

/** What a person should write instead. `names` replaces names of types. */
export function expectationOf(issue: SchemaIssue, names: Names = {}): string {
  if (!LIBRARY_TEXT.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type': {
      const type = issue.expected ?? '';
      return names[type] ?? NAMES_OF_TYPES[type] ?? type;
    }
    case 'invalid_value':
      return `one of ${issue.values?.map(String).join(', ')}`;
    case 'invalid_union':
      if (issue.options) return `one of ${issue.options.map(String).join(', ')}`;
      return alternatives(issue, names) || 'another value';
    case 'too_small':
      if (issue.origin === 'array') return `a list of at least ${issue.minimum}`;
      return issue.origin === 'string'
        ? 'a text that is not empty'
        : `a number ${issue.inclusive ? 'of at least' : 'above'} ${issue.minimum}`;
    case 'too_big':
      if (issue.origin === 'array') return `a list of at most ${issue.maximum}`;
      if (issue.origin === 'string') return `a text of at most ${issue.maximum} characters`;
      return `a number of at most ${issue.maximum}`;
    case 'invalid_key':
      return issue.issues?.[0]?.message ?? issue.message;
    case 'invalid_format':
      return issue.pattern ? `a text that matches ${issue.pattern}` : 'a text of another form';
    default:
      return 'another value';
  }
}

function alternatives({ errors = [] }: SchemaIssue, names: Names): string {
  const each = errors.flatMap(([first]) => (first ? expectationOf(first, names) : []));
  return [...new Set(each)].join(' or ');
}

/** `to.1: expected a text, got 3`: the field, what it accepts, and the given value. */
export function fieldFault(issue: SchemaIssue, value: unknown, where = fieldOf(issue)): string {
  const inside = where === '' ? '' : ` in ${where}`;
  if (issue.code === 'unrecognized_keys')
    return `unknown field ${issue.keys?.slice(0, MAX_KEYS).map(shown).join(', ')}${inside}`;
  const wanted = expectationOf(issue);
  const expected = wanted === issue.message ? wanted : `expected ${wanted}`; // the schema's own message is complete
  const field = where === '' ? '' : `${where}: `;
  return `${field}${expected}, got ${shown(valueAt(value, issue.path))}`;
}

export function fieldOf({ path }: SchemaIssue): string {
  return path.map(String).join('.');
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    value,
  );
}

/** A value for display in a refusal: short JSON. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return escapeHidden(text.length <= 80 ? text : `${cut(text, 80)}…`);
}
