import createDOMPurify from 'dompurify';
import type { HLJSApi } from 'highlight.js';
import MarkdownIt from 'markdown-it';
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { TASK, taskSign } from '../../../conversation/text/text.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { withoutAnsi } from '../../model/format.ts';
import { toClipboard } from '../parts/controls.tsx';

export interface MarkdownProps {
  readonly text: string;
  /** By a person, line by line. */
  readonly isTyped?: boolean;
  /** More is coming: then only its last block is rendered again. */
  readonly isGrowing?: boolean;
}

/** A text as elements. A selection in it is kept while it grows. */
export function Markdown({ text, isTyped = false, isGrowing = false }: MarkdownProps) {
  const place = useRef<HTMLDivElement>(null);
  /** The blocks that no longer change: their text and their last node. */
  const finished = useRef<{ readonly text: string; readonly last: ChildNode | null }>(NOTHING);
  const [attempt, again] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => {
    const div = place.current;
    if (!div) return;
    const shown = withoutAnsi(text).replace(/\r\n?/g, '\n').replace(OVERRIDES, escapeHidden); // MARKDOWN-4
    const before = isGrowing && shown.startsWith(finished.current.text) ? finished.current : NOTHING;
    const { fragment, lastBlock, isLate } = render(shown.slice(before.text.length), isTyped);
    div.onclick = ({ target }) => copyCode(target);
    grow(div, fragment, before.last ? before.last.nextSibling : div.firstChild);
    const last = div.lastElementChild?.previousSibling;
    finished.current =
      isGrowing && lastBlock > 0 && last && !isLate
        ? { text: shown.slice(0, before.text.length + lastBlock), last }
        : before;
    if (!isLate) return;
    const inOwnTask = () => again(undefined);
    waiting.add(inOwnTask);
    return () => waiting.delete(inOwnTask);
  }, [text, isTyped, isGrowing, attempt]);
  return <div class="prose" dir="auto" ref={place} />;
}

const NOTHING = { text: '', last: null };

/** As it is shown, with escapes for what changes the reading direction. */
async function copyCode(target: EventTarget | null): Promise<void> {
  const button = target instanceof Element ? target.closest('.copy-code') : null;
  if (!button) return;
  await toClipboard(button.parentElement?.querySelector('pre')?.textContent ?? '');
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy'), 2_000);
}

/**
 * Changes the children of `place` to those of `next`, from `first` on. Nodes that stay the same are kept, and a text that
 * grows keeps its node: so a selection in them is kept.
 */
function grow(place: Node, next: Node, first: ChildNode | null = place.firstChild): void {
  let at = first;
  for (const wanted of [...next.childNodes]) {
    if (at === null) {
      place.appendChild(wanted);
      continue;
    }
    const after: ChildNode | null = at.nextSibling;
    if (at instanceof Text && wanted instanceof Text) replaceText(at, wanted.data);
    else if (at.cloneNode().isEqualNode(wanted.cloneNode())) grow(at, wanted);
    else at.replaceWith(wanted);
    at = after;
  }
  while (at !== null) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

function replaceText(node: Text, data: string): void {
  if (node.data === data) return;
  let same = 0;
  while (same < node.length && node.data[same] === data[same]) same++;
  node.replaceData(same, node.length - same, data.slice(same));
}

/**
 * Renders Markdown as elements.
 *
 * MARKDOWN-1 HTML in a text is shown as text. The rendered Markdown is also sanitised with a short list of elements.
 * MARKDOWN-2 Nothing is loaded: an image is shown as a link.
 * MARKDOWN-3 Line breaks of a person are kept. In all other texts a single line break is a space, as in Markdown, because models
 *    and files wrap their lines.
 * MARKDOWN-4 Colour codes of terminals are removed. Characters that change the reading direction are escapes in code, and
 *    everywhere if they override it, so that no text looks like another one.
 */

/** With the common languages. Loaded with the first code of a page: it is a fourth of the script. */
let hljs: HLJSApi | null = null;
let isLoading = false;

/** If the daemon does not answer, the next code asks again. */
async function loadHighlighter(): Promise<void> {
  if (isLoading) return;
  isLoading = true;
  hljs = (await import('highlight.js/lib/common').catch(() => null))?.default ?? null;
  isLoading = false;
  if (hljs) nextTask();
}

/** Characters of all code of one text, and of all texts that one task renders: more would block the page. */
const MOST_HIGHLIGHTED = 4_000;
/** Characters. Some grammars take quadratic time for a word without an end. */
const LONGEST_LINE = 500;
/** What is left for this task. */
let toHighlight = MOST_HIGHLIGHTED;
/** Texts that get a task of their own, in which they are rendered again. */
const waiting = new Set<() => void>();
let isScheduled = false;

function isHighlighted(code: string, language: string): boolean {
  if (!hljs?.getLanguage(language) || code.length > toHighlight) return false;
  if (code.split('\n').some((line) => line.length > LONGEST_LINE)) return false;
  toHighlight -= code.length;
  if (!isScheduled) setTimeout(nextTask);
  isScheduled = true;
  return true;
}

function nextTask(): void {
  toHighlight = MOST_HIGHLIGHTED;
  const [next] = waiting;
  isScheduled = next !== undefined;
  if (!next) return;
  waiting.delete(next);
  setTimeout(nextTask);
  next();
}

const OVERRIDES = /[\u202a-\u202e]/g;
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

function createMarkdown(breaks: boolean) {
  const markdown = new MarkdownIt({
    html: false,
    linkify: true,
    breaks,
    highlight: (code, language) =>
      isHighlighted(code, language) && hljs
        ? hljs.highlight(code, { language, ignoreIllegals: true }).value
        : '',
  });
  markdown.renderer.rules.image = (tokens, place) => {
    const token = tokens[place];
    const escaped = markdown.utils.escapeHtml;
    const source = String(token?.attrGet('src') ?? '');
    return `<a href="${escaped(source)}">image: ${escaped(token?.content || source)}</a>`;
  };
  // The policy forbids styles in attributes: columns are aligned by a class.
  markdown.core.ruler.push('alignment', (state) => {
    for (const [place, token] of state.tokens.entries()) {
      const [text] = state.tokens[place - 2]?.type === 'list_item_open' ? (token.children ?? []) : [];
      if (text) text.content = text.content.replace(TASK, taskSign);
      const align = /^text-align:(\w+)$/.exec(String(token.attrGet('style') ?? ''))?.[1];
      if (!align) continue;
      token.attrs = (token.attrs ?? []).filter(([name]) => name !== 'style');
      token.attrSet('class', `align-${align}`);
    }
  });
  markdown.core.ruler.after('inline', 'directions', (state) => {
    for (const token of state.tokens.flatMap((one) => [one, ...(one.children ?? [])]))
      if (/^(fence|code_block|code_inline)$/.test(token.type))
        token.content = token.content.replace(DIRECTIONS, escapeHidden);
  });
  return markdown;
}

const written = createMarkdown(false);
const typed = createMarkdown(true);

const TAGS =
  'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul';
const SANITISED = {
  ALLOWED_TAGS: TAGS.split(' '),
  ALLOWED_ATTR: ['href', 'class', 'start', 'title'],
  ADD_URI_SAFE_ATTR: ['start'], // else it has to look like a URI
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true as const,
};

const purify = createDOMPurify(window);
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});

/**
 * `isTyped`: by a person, line by line. `lastBlock`: where the last block of the text begins; what is added to the text changes no
 * block before it. `isLate`: its code is highlighted in a task of its own (`waiting`), since other texts left too little for it or
 * the highlighter is not loaded yet.
 */
function render(text: string, isTyped: boolean) {
  const markdown = isTyped ? typed : written;
  const isFirst = toHighlight === MOST_HIGHLIGHTED;
  const tokens = markdown.parse(text, {});
  const html = markdown.renderer.render(tokens, markdown.options, {});
  const fragment = purify.sanitize(html, SANITISED);
  for (const scrolling of fragment.querySelectorAll('pre, table')) makeScrollable(scrolling);
  const line = tokens.findLast(({ level, map }) => level === 0 && map !== null)?.map?.[0] ?? 0;
  const code = tokens.filter(({ type }) => type === 'fence');
  if (code.length > 0 && !hljs) void loadHighlighter();
  const isLate = code.some(({ content }) => !hljs || (!isFirst && content.length > toHighlight));
  const last = text.split('\n').slice(line).join('\n');
  return { fragment, lastBlock: text.length - last.length, isLate };
}

/** A frame that scrolls sideways, which the keyboard reaches; beside code, a button that copies it. */
function makeScrollable(element: Element): void {
  const frame = document.createElement('div');
  frame.className = element.localName === 'pre' ? 'code' : 'wide';
  element.replaceWith(frame);
  frame.append(element);
  const scrolling = element.localName === 'pre' ? element : frame;
  scrolling.setAttribute('tabindex', '0');
  if (scrolling === frame) return;
  const copy = { type: 'button', className: 'quiet copy-code text-tiny', textContent: 'Copy' };
  frame.append(Object.assign(document.createElement('button'), { ...copy, ariaLabel: 'Copy the code' }));
}
