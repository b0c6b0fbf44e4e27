import type { Author } from '../log/entry.ts';
import { markerShapeOf, plainName, shapeOf } from './look-alikes.ts';

/**
 * Text of views: escaping, attribution, token estimates.
 *
 * MARKER-1 No line of an author's content can pass for a marker or an attribution (L17, V16).
 * MARKER-2 A name cannot contain anything that would end its attribution early.
 * MARKER-3 No quoted text contains a special token of a chat template: local models read those as the end of a message.
 */

export const AWAY_MARKER = '=== MESSAGES WHILE YOU WERE AWAY ===';
export const NEW_INTERACTION_MARKER = '=== NEW INTERACTION ===';

/** Every character that a reader, a model or a program may treat as a line break. */
const SEPARATORS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029';
/** A line break, for `split`. */
export const LINE_BREAK = new RegExp(`\\r\\n|[${SEPARATORS}]`, 'u');
/** A line that begins, after spaces, like a marker or with what is not in ASCII. Without `v`, which halves the speed. */
const DOUBTFUL_LINE = new RegExp(
  `(^|[${SEPARATORS}])( *[^${SEPARATORS} !-,.-<>-MOPQT-Z\\\\-z|}~][^${SEPARATORS}]*)`,
  'g',
);
/** Invisible or blank characters within one line: without line breaks, so that many blank lines take linear time. */
const BLANK = `[[\\s\\p{Cc}\\p{Cf}\\p{DI}\\u2800]--[${SEPARATORS}]]`;
/** Between the characters of a marker: what a reader does not see, and marks on them. */
const UNSEEN = '[\\p{Cf}\\p{DI}\\p{M}]*';
/** A word in look-alike characters, with anything unseen inside. */
const spelled = (word: string) =>
  [...shapeOf(word)].map((one) => one.replace('(', '[\\(\\[]') + UNSEEN).join('');
const START = `^[${BLANK}\\p{M}]*`;
/** Made at the first use: few programs need the shapes of all look-alikes. */
let lines: { readonly heading: RegExp; readonly file: RegExp; readonly recall: RegExp } | undefined;
function markerLines() {
  lines ??= {
    // `=== X` and the headings of the run context, in shapes; attributions are another matter.
    heading: new RegExp(
      `${START}(?:${spelled('===')}${BLANK}|(?:${spelled('RUN_DIRECTIVE')}|${spelled('NODE_BRIEF')})(?!\\w)|${spelled('STEP')}${BLANK}*${spelled('(from')}(?!\\w))`,
      'v',
    ),
    // `[file plan.png: …]`, in any case: the line of a file (`fileLine`).
    file: new RegExp(`${START}\\[${UNSEEN}${spelled('file')}(?!\\w)`, 'iv'),
    // `--- entry …`, `--- entries …`, `--- recall …`: lines that only `recall` itself writes.
    recall: new RegExp(
      `${START}(?:[=\\-]${UNSEEN}){3}${BLANK}*(?:${spelled('entr')}|${spelled('recall')})`,
      'iv',
    ),
  };
  return lines;
}
const BRACKET = new RegExp(`${START}\\[`, 'v');
const GAP = new RegExp(`[${BLANK}\\p{M}]`, 'v');
const ENDING = new RegExp(`\\][${BLANK}\\p{M}]*:`, 'v');

/** `[Name]:` in any but round brackets, also with more of them inside or around the name, or blanks before the colon. */
function beginsLikeAttribution(shape: string): boolean {
  const start = ENDING.test(shape) ? BRACKET.exec(shape)?.[0].length : undefined;
  if (start === undefined) return false;
  let depth = 1;
  let isClosed = false;
  let one = '';
  for (let at = start; at < shape.length; at += one.length) {
    one = String.fromCodePoint(shape.codePointAt(at) ?? 0);
    if (one === ':' && isClosed) return true;
    if (one === ']') {
      isClosed = true;
      depth--;
    } else if (!isClosed || !GAP.test(one)) {
      if (depth <= 0) return false;
      isClosed = false;
      if (one === '[') depth++;
    }
  }
  return false;
}

/** What templates of chat models read as the beginning or end of a message, wherever it is: `<|im_start|>`, `<｜User｜>`, `<turn|>`. */
const PIPED_TOKEN = /<(?=[|｜][^\s<>|｜\\]{1,64}[|｜]?>|[^\s<>|｜\\]{1,64}[|｜]>)/g;
const NAMED_TOKEN = new RegExp(
  [
    String.raw`<(?=<\/?SYS>>|\/?s>|\/?(?:minimax:)?tool_(?:call|response)s?>|(?:start|end)_of_(?:turn|image)>|\/?think>`,
    'end_of_(?:utterance|message)>|(?:start|end)_function_(?:call|response|declaration)>',
    String.raw`(?:bos|eos|pad|unk|sop|eop|eoh|eoa|mask)>|(?:BOS|EOS|PAD)_TOKEN>|(?:longcat|seed)[_:]\w+>`,
    String.raw`(?:SPECIAL|extra_id|reserved)_\d+>)`,
    String.raw`\[(?=\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|MODEL_SETTINGS|THINK|gMASK|sMASK)\]|e~\[)`,
    String.raw`\](?=~!?b[[\]])`,
  ].join('|'),
  'g',
);

/** Puts a backslash into each special token of a chat template (MARKER-3). */
export function escapeTokens(text: string): string {
  const isTag = text.includes('<');
  const named = isTag || /[[\]]/.test(text) ? text.replace(NAMED_TOKEN, '$&\\') : text;
  return isTag && /[|｜]/.test(text) ? named.replace(PIPED_TOKEN, '$&\\') : named;
}

/**
 * Puts a backslash before each line that begins like a marker or an attribution, look-alikes included, and into special tokens
 * (MARKER-1, MARKER-3).
 */
export function escapeMarkers(text: string): string {
  return escapeTokens(escapeLines(text, isForged));
}

function isForged(shape: string): boolean {
  const { heading, file } = markerLines();
  return heading.test(shape) || file.test(shape) || beginsLikeAttribution(shape);
}

/** Each line begins with `> `, so that no line can pass for one outside the quotation. */
export function quotedLines(text: string): string[] {
  return text.split(LINE_BREAK).map((line) => `> ${line}`);
}

/** Puts a backslash before each line that begins like one of `recall` itself (MARKER-1). */
export function escapeRecalled(text: string): string {
  return escapeLines(text, (shape) => markerLines().recall.test(shape));
}

/** The first character that is seen, if a marker may begin with it. Most doubtful lines end here, without a normalized copy. */
const MAY_BE_FORGED = new RegExp(
  `${START}(?:[=\\-](?:[=\\-]|\\P{ASCII})|[\\[\\{]|([RNS])(?:[UO0T]|\\P{ASCII})|(\\P{ASCII}))`,
  'v',
);
const beginnings = new Map<string, boolean>();

/** Whether the shape of a character is, or begins with, that of the beginning of a marker. */
function mayBegin(character: string): boolean {
  const known = beginnings.get(character);
  if (known !== undefined) return known;
  const may = /^[\p{M}]*(?:$|[=[\-RNS])/u.test(markerShapeOf(character));
  beginnings.set(character, may);
  return may;
}

const isAscii = (text: string) => /^[ -~]*$/.test(text);
const withSquareBrackets = (text: string) => text.replaceAll('{', '[').replaceAll('}', ']');

function escapeLines(text: string, isOurs: (shape: string) => boolean): string {
  return text.replace(DOUBTFUL_LINE, (whole: string, before: string, line: string) => {
    const found = MAY_BE_FORGED.exec(line);
    if (!found) return whole;
    const [, letter, other] = found;
    if (other !== undefined && !mayBegin(other)) return whole;
    const shape = letter === undefined && isAscii(line) ? withSquareBrackets(line) : markerShapeOf(line);
    return isOurs(shape) ? `${before}\\${line}` : whole;
  });
}

/** The role of other agents' messages (V16). */
export type OtherAgentsAs = 'system' | 'user';

/** `[Name]: ` (MARKER-2); with `otherAgentsAs: user` an agent has `[agent Name]: `, which no person can have. */
export function attribution(author: Author, otherAgentsAs: OtherAgentsAs): string {
  const name = escapeTokens(plainName(author.name) || plainName(author.id) || 'unnamed');
  return author.kind === 'agent' && otherAgentsAs === 'user' ? `[agent ${name}]: ` : `[${name}]: `;
}

/**
 * Estimated tokens: one for four ASCII characters, one for any other code point.
 * `hello` is 2, `你好` is 2, `hello你好` is 4, `😀` is 1.
 */
export function estimateTokens(text: string): number {
  let ascii = 0;
  let others = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) ascii++;
    // The second half of a surrogate pair is part of a code point that is counted already.
    else if (unit < 0xdc00 || unit > 0xdfff) others++;
  }
  return Math.ceil(ascii / 4) + others;
}

/** The longest beginning within so many estimated tokens. Never splits a character. */
export function firstTokens(text: string, tokens: number): string {
  let ascii = 0;
  let others = 0;
  let end = 0;
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) ascii++;
    else others++;
    if (Math.ceil(ascii / 4) + others > tokens) break;
    end += character.length;
  }
  return text.slice(0, end);
}

const TITLE_LENGTH = 60;

/** Quoted lines, and the line that announces them. */
const QUOTATION = /(?:^|\n)[^\n]*:\n(?:>[^\n]*(?:\n|$))+/g;

/** The first words of a message, for lists: its own ones, if it has any. */
export function titleFrom(content: string): string {
  const own = content.replace(QUOTATION, '\n');
  const words = [...(own.trim() === '' ? content : own).replace(/\s+/gu, ' ').trim()];
  return words.length <= TITLE_LENGTH ? words.join('') : `${words.slice(0, TITLE_LENGTH - 1).join('')}…`;
}

/** Length of the preview of a large result, in code points. */
export const PREVIEW_LENGTH = 500;

/** Previews. They never split a character. */
export function firstCodePoints(text: string, count: number): string {
  return [...text.slice(0, count * 2)].slice(0, count).join('');
}

/** A result after a reduction. */
export function previewOf(text: string, index: number, length = PREVIEW_LENGTH): string {
  const begins = firstCodePoints(text, length);
  return `${begins}${begins && '\n'}[shortened: recall ${index}]`;
}

/** Characters of a text that are read: more are not shown. */
const READ = 2_000;

/** The beginning of a text on one line. */
export function shortLine(text: string, most = 120): string {
  const letters = [...text.slice(0, READ).replace(/\s+/gu, ' ').trim()];
  return letters.length <= most ? letters.join('') : `${letters.slice(0, most - 1).join('')}…`;
}

/** In front of an item of a list of tasks. */
export const TASK = /^\[([ xX])\](?= )/gmu;
export const taskSign = (_: string, mark: string): string => (mark === ' ' ? '☐' : '☑');

/** The same of Markdown, without its marks. */
export function plainLine(markdown: string, most: number): string {
  const words = markdown
    .slice(0, READ)
    .replace(/^[ \t]*(?:```.*|#{1,6} |> |[-*+] )/gmu, '')
    .replace(TASK, taskSign)
    .replace(/^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$/gmu, '') // below the head of a table
    .replace(/^[ \t]*\|.*\|[ \t]*$/gmu, (row) => row.replaceAll('|', ' '))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/gu, '$1')
    .replace(/\*\*|~~|`|(?<!\w)__|__(?!\w)/gu, '') // a name such as `mcp__a__b` keeps its own
    .replace(/(?<=^|[\s("'“‘])([*_])(?=\S)([^*_\n]*[^\s*_])\1(?=$|[\s.,:;!?)"'”’])/gmu, '$2'); // `2 * 3` keeps its own
  return shortLine(words, most);
}
