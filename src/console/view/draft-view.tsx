import type { LiveDraft } from '../model/live.ts';
import { Markdown } from './markdown.tsx';
import { Avatar, Name } from './parts.tsx';

/** What is being said now. */
export function DraftView({ draft }: { readonly draft: LiveDraft }) {
  const { agent, text, reasoning, tools, isPartial } = draft;
  return (
    <article class="block message draft" aria-label={`${agent} is speaking`}>
      <Avatar id={agent} />
      <div class="body">
        <p class="by">
          <Name id={agent} />
          <span class="pulse" aria-hidden="true" />
          <span class="muted">
            {text === '' && reasoning !== ''
              ? 'thinks'
              : tools.length > 0
                ? `calls ${tools.join(', ')}`
                : 'speaks'}
          </span>
        </p>
        {text === '' && reasoning !== '' && <p class="reasoning">{reasoning.slice(-300)}</p>}
        <Markdown text={isPartial ? `… ${text}` : text} />
      </div>
    </article>
  );
}
