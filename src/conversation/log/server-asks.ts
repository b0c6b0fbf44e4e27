import { visibleText } from '../../kernel/hidden.ts';
import type { ServerAsks } from './entry.ts';

/** What the server of a running call asks a person, in words (SERVER-QUESTION-1). */

export type Field = Readonly<Record<string, unknown>>;

/** Who asks what, a line for each field, and where the answer goes: for the person who gives it. Nothing in it is hidden. */
export function askedText({ server, message, url, schema }: ServerAsks): string {
  const asking = visibleText(`the server “${server}”, a program outside of Parley, asks “${message}”`);
  if (url !== undefined)
    return `${asking}. Open ${visibleText(url)} yourself, then approve: the server learns that you agreed`;
  const fields = fieldsAsked(schema).map(
    ([name, field, about]) => `  ${visibleText(fieldText(name, field, about, schema))}`,
  );
  const end = 'The answer goes to that server and is kept in the log: give it no passwords or keys';
  return fields.length > 0 ? [`${asking}:`, ...fields, end].join('\n') : `${asking}. ${end}`;
}

function fieldText(name: string, field: Field, purpose: string, { required }: ServerAsks['schema']): string {
  const { type, title } = field;
  const options = optionsAsked(type === 'array' ? field.items : field).map(([value, words]) =>
    words === String(value) ? JSON.stringify(value) : `${JSON.stringify(value)} for ${words}`,
  );
  const choice = `${type === 'array' ? 'any' : 'one'} of ${options.join(', ')}`;
  const kind = options.length > 0 ? choice : type === 'string' ? '' : type;
  const isRequired = Array.isArray(required) && required.includes(name);
  const about = [title, purpose, kind, isRequired && 'required'].filter(Boolean).join(', ');
  return about ? `${name} (${about})` : name;
}

/** What the field is for, and its limits. */
function aboutOf({ description, ...field }: Field): string {
  const { minimum, maximum, minLength: least = minimum, maxLength: most = maximum } = field;
  const unit = least === minimum && most === maximum ? '' : ' characters';
  const both = least !== undefined && most !== undefined ? `${least} to ${most}` : '';
  const one = least !== undefined ? `at least ${least}` : most !== undefined ? `at most ${most}` : '';
  return [description, (both || one) && `${both || one}${unit}`].filter(Boolean).join(', ');
}

/** The values of a choice, each with its title: `enum` with `enumNames`, or `oneOf` and `anyOf` with `const` and `title`. */
export function optionsAsked(choice: unknown): readonly (readonly [value: unknown, title: string])[] {
  if (!isField(choice)) return [];
  const { enum: values, enumNames: names, oneOf, anyOf } = choice;
  const titled = [oneOf, anyOf].flatMap((list) => (Array.isArray(list) ? list.filter(isField) : []));
  const plain = Array.isArray(values) ? values.map((value, at) => [value, Object(names)[at]] as const) : [];
  const options = [...plain, ...titled.map(({ const: value, title }) => [value, title] as const)];
  return options.map(([value, title]) => [value, String(title ?? value)]);
}

/** The defaults of the fields, and an empty value for each that is required. */
export function proposedAnswer(schema: ServerAsks['schema']): Record<string, unknown> {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    fieldsAsked(schema).flatMap(([name, field]) => {
      if (field.default === undefined && !required.includes(name)) return [];
      return [[name, field.default ?? EMPTY[String(field.type)] ?? '']];
    }),
  );
}

const EMPTY: Field = { boolean: false, number: 0, integer: 0, array: [] };

function isField(value: unknown): value is Field {
  return typeof value === 'object' && value !== null;
}

/** By name, with what each is for and its limits. */
export function fieldsAsked({ properties }: ServerAsks['schema']) {
  const known = isField(properties) ? Object.entries(properties) : [];
  return known.flatMap(([name, field]) => (isField(field) ? [[name, field, aboutOf(field)] as const] : []));
}
