import { readFileSync } from 'node:fs';

export const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/gu)].map(([, name = '']) => name);

/** A page of docs/spec, and the first table of each of its sections. */
export function specPage(name: string) {
  const page = readFileSync(new URL(`../../../docs/spec/${name}`, import.meta.url), 'utf8');
  const section = (title: string) => page.split(/^## /mu).find((text) => text.startsWith(`${title}\n`)) ?? '';
  /** The cells of each row. */
  function rowsOf(title: string): string[][] {
    const lines = section(title)
      .split('\n')
      .filter((line) => line.startsWith('|'));
    return lines.slice(2).map((line) => line.split('|').slice(1, -1));
  }
  const firstColumn = (title: string) => rowsOf(title).flatMap(([first = '']) => codeIn(first));
  return { page, section, rowsOf, firstColumn };
}
