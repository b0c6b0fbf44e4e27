/** Completion of `@slug` in the composer. */
export interface Mention {
  /** The position of the `@`. */
  readonly from: number;
  readonly typed: string;
}

/** The mention at the cursor; null: none. */
export function mentionAt(text: string, cursor: number): Mention | null {
  const found = /(?:^|[^\p{L}\p{M}\p{N}_/\\])@([\p{L}\p{N}-]*)$/iu.exec(text.slice(0, cursor));
  if (!found) return null;
  const typed = found[1] ?? '';
  return { from: cursor - typed.length - 1, typed };
}

/** Agents whose slug or name begins with the text; slugs first. */
export function candidates<T extends { readonly slug: string; readonly name: string }>(
  agents: readonly T[],
  typed: string,
): T[] {
  const wanted = typed.toLowerCase();
  const bySlug = agents.filter(({ slug }) => slug.startsWith(wanted));
  const byName = agents.filter(
    (agent) =>
      !bySlug.includes(agent) &&
      agent.name
        .toLowerCase()
        .split(/\s+/)
        .some((word) => word.startsWith(wanted)),
  );
  return [...bySlug, ...byName];
}

export function completed(text: string, mention: Mention, slug: string): { text: string; cursor: number } {
  const before = `${text.slice(0, mention.from)}@${slug} `;
  const after = text.slice(mention.from + 1 + mention.typed.length).replace(/^ /, '');
  return { text: before + after, cursor: before.length };
}
