import { createHash } from 'node:crypto';

/**
 * The wire names of the tools of servers: `mcp__<server>__<tool>`.
 *
 * NAMES-1 A name is a valid function name: letters, digits, `_` and `-`, at most 64.
 * NAMES-2 A name depends on the set of tools, not on their order.
 * NAMES-3 If several tools get the same name, each gets a suffix derived from its own names, and none keeps the plain name:
 *    a name that a person approved must never name another tool.
 * NAMES-4 Tools whose names still collide are not offered: a server can name one tool like the suffixed name of another.
 * NAMES-5 Tools of two servers never share a name: the configuration refuses `__` in server names, and names so long that
 *    `mcp__<server>__` is cut (at most 55 characters).
 */

const LONGEST = 64;
const MARK_DIGITS = 8;

export interface ServerTool {
  readonly server: string;
  /** As the server calls it. */
  readonly tool: string;
}

/** By wire name. */
export function wireNames<T extends ServerTool>(places: readonly T[]): ReadonlyMap<string, T> {
  const named = [...alike(places.map((place) => [plainName(place), place]))].flatMap(([name, same]) =>
    same.map((place): [string, T] => [same.length === 1 ? name : marked(name, place), place]),
  );
  const offered = [...alike(named)].flatMap(
    ([name, [place, ...others]]): [string, T][] => (place && others.length === 0 ? [[name, place]] : []), // NAMES-4
  );
  return new Map(offered.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function alike<T>(named: readonly (readonly [string, T])[]): ReadonlyMap<string, T[]> {
  const found = new Map<string, T[]>();
  for (const [name, place] of named) {
    const same = found.get(name);
    if (same) same.push(place);
    else found.set(name, [place]);
  }
  return found;
}

/** Whether `name` is one that this server's tools can have. */
export function isOfServer(name: string, server: string): boolean {
  return name.startsWith(valid(`mcp__${server}__`));
}

function plainName(place: ServerTool): string {
  const name = valid(`mcp__${place.server}__${place.tool}`);
  return name.length <= LONGEST ? name : marked(name, place);
}

function marked(name: string, { server, tool }: ServerTool): string {
  const mark = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, MARK_DIGITS);
  return `${name.slice(0, LONGEST - MARK_DIGITS - 1)}_${mark}`;
}

function valid(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_');
}
