import type { AnswerOf } from '../../client/index.ts';
import { oneLine } from './entry.ts';
import { type Palette, voiceOf } from './palette.ts';

type Hit = AnswerOf<'search'>['hits'][number];

/** Found messages: a line that names the place, and the snippet. */
export function renderFound(hits: readonly Hit[], palette: Palette): string {
  return hits.map((hit) => `${placeText(hit, palette)}\n  ${snippetText(hit, palette)}`).join('\n');
}

function placeText({ conversation, title, index, at, author, phase }: Hit, palette: Palette): string {
  const name = oneLine(author.name);
  const who = author.kind === 'agent' ? voiceOf(author.id, palette)(name) : palette.bold(name);
  const facts = [at.slice(0, 16).replace('T', ' '), phase, title === null ? null : oneLine(title)];
  return `${conversation} ${index}  ${who}  ${palette.dim(facts.filter((fact) => fact !== null).join(' · '))}`;
}

function snippetText({ snippet, marks }: Hit, palette: Palette): string {
  let [text, end] = ['', 0];
  for (const [from, to] of marks) {
    text += oneLine(snippet.slice(end, from)) + palette.bold(oneLine(snippet.slice(from, to)));
    end = to;
  }
  return text + oneLine(snippet.slice(end));
}
