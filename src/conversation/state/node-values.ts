import { cut, type JsonRecord } from '../../kernel/index.ts';
import { escapeMarkers } from '../text/text.ts';
import { type Condition, END, type Target, targetsOf, type Workflow, type WorkflowNode } from './roster.ts';

/**
 * Values that the nodes of a run give: passed on in briefs, and branched on.
 *
 * NODE-VALUES-1 `{{nodes.NAME.value.PATH}}` in a brief is replaced where the node is entered. What a model wrote forges no marker.
 * NODE-VALUES-2 The configuration is refused if a reference or a condition can never have a value.
 */

/** Characters of one reference. */
const LONGEST = 8_192;

export const REFERENCE = /\{\{\s*nodes\.([\w-]+)\.value((?:\.[\w-]+)*)\s*\}\}/g;

/** Undefined: the node gives no value if it ends so. */
export function schemaOfNode(
  workflow: Workflow | undefined,
  node: WorkflowNode,
  [next]: readonly string[],
): JsonRecord | undefined {
  return next === END ? (workflow?.answers ?? node.answers) : node.answers;
}

/** Where the run continues after this outcome. */
export function nextNodes({ next = [] }: WorkflowNode, ofOutcome: Target, value: unknown): readonly string[] {
  return targetsOf(next.find(({ when }) => holds(when, value))?.to ?? ofOutcome);
}

function holds({ path, equals, above, below }: Condition, value: unknown): boolean {
  const found = valueAt(value, keysOf(path));
  if (above !== undefined) return typeof found === 'number' && found > above;
  return below === undefined ? found === equals : typeof found === 'number' && found < below;
}

export function conditionText({ path, equals, above, below }: Condition): string {
  if (above !== undefined) return `${path} above ${above}`;
  return below === undefined ? `${path} is ${JSON.stringify(equals)}` : `${path} below ${below}`;
}

const keysOf = (path: string): string[] => path.split('.').filter((key) => key !== '');

function valueAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined,
    value,
  );
}

/** NODE-VALUES-1 */
export function filledBrief(brief: string, values: Readonly<Record<string, unknown>> = {}): string {
  return brief.replaceAll(REFERENCE, (_, node: string, path: string) => {
    const found = Object.hasOwn(values, node) ? valueAt(values[node], keysOf(path)) : undefined;
    if (found === undefined) return '(no value)';
    return escapeMarkers(cut(typeof found === 'string' ? found : JSON.stringify(found), LONGEST));
  });
}

/** Why a value of this schema never has this path; null: it can. */
export function pathFault(schema: JsonRecord, path: string): string | null {
  let at: unknown = schema;
  for (const key of keysOf(path)) {
    const properties = valueAt(at, ['properties']);
    const items = valueAt(at, ['items']);
    if (typeof properties === 'object' && properties !== null) {
      if (!Object.hasOwn(properties, key))
        return `there is no ${key}, but ${Object.keys(properties).join(', ')}`;
      at = Reflect.get(properties, key);
    } else if (/^\d+$/.test(key) && typeof items === 'object') at = items;
    else if (isClosed(at)) return `a value of the type ${String(valueAt(at, ['type']))} has no ${key}`;
    else return null; // the schema leaves it open
  }
  return null;
}

function isClosed(schema: unknown): boolean {
  const type = valueAt(schema, ['type']);
  return typeof type === 'string' && type !== 'object' && type !== 'array';
}
