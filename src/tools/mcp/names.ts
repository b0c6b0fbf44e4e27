import { createHash } from 'node:crypto';

/**
 * The names under which models call the tools of servers: `mcp__<server>__<tool>`.
 *
 * N1 A name is a valid function name: letters, digits, `_` and `-`, at most 64.
 * N2 A name depends on the set of tools, never on the order in which they came.
 * N3 Where several tools come out alike, all of them get a mark made from their own names, and none keeps the plain
 *    one: what a person approved under a name must not become another tool's.
 */

const LONGEST = 64;
const MARK_DIGITS = 8;

export interface ToolPlace {
  readonly server: string;
  /** As the server calls it. */
  readonly tool: string;
}

/** By wire name. */
export function wireNames<T extends ToolPlace>(places: readonly T[]): ReadonlyMap<string, T> {
  const alike = new Map<string, T[]>();
  for (const place of places) {
    const name = plainName(place);
    alike.set(name, [...(alike.get(name) ?? []), place]);
  }
  const named = [...alike].flatMap(([name, same]) =>
    same.map((place): [string, T] => [same.length === 1 ? name : marked(name, place), place]),
  );
  return new Map(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Whether `name` is one that this server's tools can have. */
export function isOfServer(name: string, server: string): boolean {
  return name.startsWith(valid(`mcp__${server}__`));
}

function plainName(place: ToolPlace): string {
  const name = valid(`mcp__${place.server}__${place.tool}`);
  return name.length <= LONGEST ? name : marked(name, place);
}

function marked(name: string, { server, tool }: ToolPlace): string {
  const mark = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, MARK_DIGITS);
  return `${name.slice(0, LONGEST - MARK_DIGITS - 1)}_${mark}`;
}

function valid(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_');
}
