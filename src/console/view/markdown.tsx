import createDOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import MarkdownIt from 'markdown-it';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Renders Markdown as elements.
 *
 * MARKDOWN-1 HTML in a text is shown as text. The rendered Markdown is also sanitised with a short list of elements.
 * MARKDOWN-2 Nothing is loaded: an image is shown as a link.
 * MARKDOWN-3 Line breaks of a person are kept. In all other texts a single line break is a space, as in Markdown, because models
 *    and files wrap their lines.
 */

const LANGUAGES = { bash, css, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

function createMarkdown(breaks: boolean) {
  const markdown = new MarkdownIt({
    html: false, // MARKDOWN-1
    linkify: true,
    breaks, // MARKDOWN-3
    highlight: (code, language) =>
      hljs.getLanguage(language) ? hljs.highlight(code, { language, ignoreIllegals: true }).value : '',
  });
  markdown.renderer.rules.image = (tokens, place) => {
    const token = tokens[place];
    const escaped = markdown.utils.escapeHtml;
    const source = String(token?.attrGet('src') ?? '');
    return `<a href="${escaped(source)}">image: ${escaped(token?.content || source)}</a>`; // MARKDOWN-2
  };
  // The policy forbids styles in attributes: columns are aligned by a class.
  markdown.core.ruler.push('alignment', (state) => {
    for (const token of state.tokens) {
      const align = /^text-align:(\w+)$/.exec(String(token.attrGet('style') ?? ''))?.[1];
      if (!align) continue;
      token.attrs = (token.attrs ?? []).filter(([name]) => name !== 'style');
      token.attrSet('class', `align-${align}`);
    }
  });
  return markdown;
}

const written = createMarkdown(false);
const typed = createMarkdown(true);

const SANITISED = {
  ALLOWED_TAGS: [
    'a',
    'blockquote',
    'br',
    'code',
    'del',
    'em',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'hr',
    'li',
    'ol',
    'p',
    'pre',
    's',
    'span',
    'strong',
    'table',
    'tbody',
    'td',
    'th',
    'thead',
    'tr',
    'ul',
  ],
  ALLOWED_ATTR: ['href', 'class', 'start'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
} as const;

const purify = createDOMPurify(window);
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});

function fragmentOf(text: string, isTyped: boolean): DocumentFragment {
  return purify.sanitize((isTyped ? typed : written).render(text), {
    ...SANITISED,
    ALLOWED_TAGS: [...SANITISED.ALLOWED_TAGS],
    ALLOWED_ATTR: [...SANITISED.ALLOWED_ATTR],
  });
}

/** `isTyped`: by a person, line by line. */
export function Markdown({ text, isTyped = false }: { readonly text: string; readonly isTyped?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    place.current?.replaceChildren(fragmentOf(text, isTyped));
  }, [text, isTyped]);
  return <div class="prose" ref={place} />;
}
