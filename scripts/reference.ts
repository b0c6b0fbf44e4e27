import { readdirSync, readFileSync } from 'node:fs';
import type { Command, Option } from 'commander';
import ts from 'typescript';
import { createProgram } from '../src/cli/program.ts';
import { editorSchemas } from '../src/config/index.ts';
import { keyOfVariable } from '../src/config/schema/schema-keys.ts';
import { BARE_REPOSITORY, HARMLESS, PROGRAMS, SECRETS } from '../src/tools/builtin/files/protected.ts';

/** The pages with a generated part, by path. `npm run reference` writes them; a test compares them. */
export async function referencePages(root: URL): Promise<Map<string, string>> {
  const parts = {
    'docs/reference/cli.md': commandsPart(),
    'docs/reference/configuration.md': keysPart((await editorSchemas())['parley.schema.json'] as Schema),
    'docs/reference/errors.md': errorsPart(sourcesOf(root)),
    'docs/guides/security.md': protectedNamesPart(),
  };
  return new Map(
    Object.entries(parts).map(([path, part]) => [
      path,
      withPart(readFileSync(new URL(path, root), 'utf8'), part),
    ]),
  );
}

export interface Source {
  readonly path: string;
  readonly text: string;
}

export function sourcesOf(root: URL): Source[] {
  return readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `src/${path}`)
    .sort()
    .map((path) => ({ path, text: readFileSync(new URL(path, root), 'utf8') }));
}

const BEGIN = '<!-- Written by `npm run reference` from here on -->';
const END = '<!-- up to here -->';

/** The page with another generated part: what is between the two comments. */
function withPart(page: string, part: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end === -1) throw new Error(`the page lacks the lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${part}\n\n${page.slice(end)}`;
}
const text = (raw: string) => raw.replaceAll('<', '&lt;').replaceAll(/\s+/g, ' ').trim();
const cell = (raw: string) => text(raw).replaceAll('|', '\\|');

function protectedNamesPart(): string {
  const named = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  const rows = (table: typeof SECRETS) => table.map(({ about, names }) => [about, named(names)]);
  const writing = [
    ...rows(PROGRAMS),
    ['bare repositories', `\`${BARE_REPOSITORY}\` (a file, not a folder)`],
    ['Parley', 'the folder of the configuration'],
    ['your own', 'the names of `tools.protected`'],
    ['every other name that begins with a dot, except', named(HARMLESS)],
  ];
  return [
    `Secrets: reading and writing need approval.\n\n${table(['about', 'names'], rows(SECRETS))}`,
    `Programs and access: writing needs approval.\n\n${table(['about', 'names'], writing)}`,
  ].join('\n\n');
}

function commandsPart(): string {
  const stream = { write: () => true } as never;
  const program = createProgram({ stdout: stream, stderr: stream } as never, (() => undefined) as never);
  const all = program.commands.flatMap((command) => [command, ...command.commands]);
  const groups = [...new Set(program.commands.map((command) => command.helpGroup()))];
  const options = all.flatMap((command) => command.options.filter(({ hidden }) => !hidden));
  const repeated = new Set(
    options.map(optionText).filter((says, _, texts) => texts.filter((one) => one === says).length > 3),
  );
  const shared = [...new Map(options.map((option) => [optionText(option), option])).values()].filter(
    (option) => repeated.has(optionText(option)),
  );
  return [
    `### Options of every command\n\n${optionTable(program.options.filter(({ flags }) => !flags.startsWith('--nats-')))}`,
    `### Options of several commands\n\nThe lists below name these without their meaning, and options whose name says all.\n\n${optionTable(shared)}`,
    ...groups.map((group) => {
      const own = program.commands.filter((command) => command.helpGroup() === group);
      const parts = own.flatMap((command) =>
        command.commands.length > 0
          ? command.commands.map((one) => commandPart(one, command.name(), repeated))
          : [commandPart(command, '', repeated)],
      );
      return `### ${group.replace(/:$/, '')}\n\n${parts.join('\n')}`;
    }),
  ].join('\n\n');
}

/** Descriptions of arguments and options that say no more than the name and the usage (`--publisher` has another meaning elsewhere). */
const PLAIN =
  /^(?:its (?:id|name)|of the approval|only (?!from this one)[\w ]*this (?:one|agent|conversation|phase|model|tool|error code)\b.*|whose view|why|begin at this entry|at most this many(?: turns)?|the (?:hired agent|index of the answer|slug of the new agent)|your shell|its id \(default: every conversation\))$/;

/** A list item: usage and meaning, and below it the options of this command. */
function commandPart(command: Command, above: string, repeated: ReadonlySet<string>): string {
  const usage = [
    ['parley', above, command.name()].filter(Boolean).join(' '),
    ...command.registeredArguments.map(
      (argument) =>
        `${argument.required ? '<' : '['}${argument.name()}${argument.variadic ? '...' : ''}${argument.required ? '>' : ']'}`,
    ),
  ];
  const visible = command.options.filter(({ hidden }) => !hidden);
  const shared = visible.filter(
    (option) => repeated.has(optionText(option)) || PLAIN.test(option.description),
  );
  const others = shared.map(({ flags }) => `\`${flags}\``).join(', ');
  return [
    `- **\`${usage.join(' ')}\`**: ${text(command.description())}${others === '' ? '' : `. Also ${others}`}`,
    ...command.registeredArguments
      .filter(({ description }) => description && !PLAIN.test(description))
      .map((one) => `  - \`${one.name()}\`: ${text(one.description)}`),
    ...visible
      .filter((option) => !shared.includes(option))
      .map((option) => `  - \`${option.flags}\`: ${text(optionText(option))}`),
  ].join('\n');
}

function optionText({ description, argChoices }: Option): string {
  return argChoices ? `${description} (${argChoices.join(', ')})` : description;
}

function optionTable(options: readonly Option[]): string {
  const rows = options
    .filter(({ hidden }) => !hidden)
    .map((option) => [`\`${option.flags.replaceAll('|', '\\|')}\``, optionText(option)]);
  return table(['option', 'meaning'], rows);
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((text) => (text.startsWith('`') ? text : cell(text))).join(' | ')} |`;
  return [line(headings), `|${headings.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Keys in sections of their own have at least this many rows. */
const SECTION = 6;

function keysPart(schema: Schema): string {
  const variables = new Map([...keyOfVariable()].map(([name, path]) => [path.join('.'), name]));
  const sections = Object.entries(schema.properties ?? {}).map(([key, below]) => ({
    key,
    rows: keysOf(key, below)
      // The heading of a section, or the name, says what is below it.
      .filter(
        ([name, one]) => name !== key || !one.properties || Object.keys(one.properties).length < SECTION,
      )
      .filter(([, one]) => one.description)
      .map(([name, one]) =>
        keyRow(name, one, variables.get(name.replace('models.<name>', 'models.default'))),
      ),
  }));
  const headings = ['key', 'type', 'default', 'meaning'];
  return [
    ...sections
      .filter(({ rows }) => rows.length >= SECTION)
      .map(({ key, rows }) => `### ${key}\n\n${table(headings, rows)}`),
    `### Other keys\n\n${table(
      headings,
      sections.filter(({ rows }) => rows.length < SECTION).flatMap(({ rows }) => rows),
    )}`,
  ].join('\n\n');
}

function keyRow(name: string, one: Schema, variable: string | undefined): string[] {
  const value =
    one.default === undefined || typeof one.default === 'object' ? '' : JSON.stringify(one.default);
  const says = one.description ?? '';
  const shown = variable === undefined ? '' : ` (\`${variable}\`)`;
  return [`\`${name}\``, typeOf(one), value === '' ? '' : `\`${value}\``, `${says}${shown}`];
}

function keysOf(path: string, schema: Schema): [string, Schema][] {
  const { properties = {}, additionalProperties: others, items, anyOf = [], oneOf = [] } = schema;
  return [
    [path, schema],
    ...Object.entries(properties).flatMap(([key, below]) => keysOf(`${path}.${key}`, below)),
    ...(typeof others === 'object' ? keysOf(`${path}.<name>`, others) : []),
    ...(items?.properties ? keysOf(`${path}[]`, items) : []),
    ...[...anyOf, ...oneOf].flatMap((one) => keysOf(path, one).slice(1)),
  ];
}

function typeOf({ type, enum: values, const: only, items, anyOf = [], oneOf = [] }: Schema): string {
  if (values) return values.map((value) => JSON.stringify(value)).join(', ');
  if (only !== undefined) return JSON.stringify(only);
  if (anyOf.length + oneOf.length > 0) return [...new Set([...anyOf, ...oneOf].map(typeOf))].join(' or ');
  if (type === 'array') return items ? `list of ${typeOf(items)}` : 'list';
  return [type ?? 'any'].flat().join(' or ');
}

interface ErrorText {
  readonly message: string;
  readonly hint: string;
}

/** Every `new ParleyError(code, message, { hint })` and `refusal(code, message, hint)` of the source. */
function errorsPart(sources: readonly Source[]): string {
  const found = new Map<string, ErrorText[]>();
  for (const { path, text } of sources) {
    const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    const visit = (node: ts.Node): void => {
      if (ts.isNewExpression(node) || ts.isCallExpression(node)) addError(node, found);
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  const codes = [...found].sort(([a], [b]) => (a < b ? -1 : 1));
  const telling = new Map(
    codes.map(([code, texts]) => [code, texts.filter(({ hint }) => !IS_VALUE.test(hint))]),
  );
  const rows = codes.flatMap(([code]) => {
    const unique = [...new Map(telling.get(code)?.map((one) => [one.hint, one])).values()];
    if (unique.length > MOST_MESSAGES) return [];
    const named = unique.filter(({ message, hint }) => !IS_VALUE.test(message) || hint.length > 60);
    return (named.length > 0 ? named : unique).map(({ message, hint }, place) => [
      place === 0 ? `\`${code}\`` : '',
      message,
      hint,
    ]);
  });
  const shown = new Set(rows.map(([code]) => code));
  const others = codes.map(([code]) => `\`${code}\``).filter((code) => !shown.has(code));
  const listed = `Of these, each message says all: ${others.join(', ')}.`;
  return `${table(['code', 'message', 'what to do'], rows)}\n\n${listed}`;
}

/** A code of more messages is that of a kind of fault: none of them is typical. */
const MOST_MESSAGES = 2;
/** Known at run time only. */
const IS_VALUE = /^[…:; ]*$/;

function addError(node: ts.NewExpression | ts.CallExpression, found: Map<string, ErrorText[]>): void {
  if (!ts.isIdentifier(node.expression) || !['ParleyError', 'refusal'].includes(node.expression.text)) return;
  const [code, message, options] = node.arguments ?? [];
  if (!code || !ts.isStringLiteral(code) || !message) return;
  const hint =
    options && ts.isObjectLiteralExpression(options)
      ? options.properties.find((one) => one.name?.getText() === 'hint')
      : options;
  const value = hint && ts.isPropertyAssignment(hint) ? hint.initializer : hint;
  const texts = found.get(code.text) ?? [];
  texts.push({
    message: templateOf(message),
    hint: value && ts.isExpression(value as ts.Node) ? templateOf(value as ts.Expression) : '',
  });
  found.set(code.text, texts);
}

/** A text with `…` for what is known at run time only. */
function templateOf(node: ts.Expression): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
  if (ts.isConditionalExpression(node)) return `${templateOf(node.whenTrue)} / ${templateOf(node.whenFalse)}`;
  return '…';
}
