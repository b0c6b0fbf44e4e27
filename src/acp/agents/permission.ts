import { resolve } from 'node:path';
import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk';
import { PERMIT } from '../../conversation/index.ts';
import type { ToolRequest } from './turn.ts';
import { contentText } from './updates.ts';

/**
 * A permission that an agent asks for, as a call of a tool of Parley: the policy decides first, then a person, durably.
 *
 * ACP-PERMISSION-1 The tool has the kind of the call in its name, so that the rules of `tools.policy` for paths and commands hold. A call
 *                  that names several paths, or a command with arguments, another folder or variables beside it, is `permit_other`: no
 *                  rule sees all of it.
 * ACP-PERMISSION-2 An approval allows this call once. `allow_always` is never chosen: a later call asks again.
 * ACP-PERMISSION-3 A denial, and a turn that ends, reject it.
 */
export function permitCall({ toolCall }: RequestPermissionRequest, directory: string): ToolRequest {
  const { title, kind, rawInput, locations, content } = toolCall;
  const input =
    rawInput !== null && typeof rawInput === 'object' ? (rawInput as Record<string, unknown>) : {};
  const named = [
    ...(locations ?? []).map((location) => location.path),
    ...(content ?? []).flatMap((one) => (one.type === 'diff' ? [one.path] : [])),
    ...PATHS.flatMap((name) => input[name] ?? []).filter((value) => typeof value === 'string'),
  ];
  const [path, ...others] = new Set(named.map((one) => resolve(directory, one)));
  const command = isPlain(input, directory) ? textIn(input, 'command', 'cmd') : undefined;
  const shown = content?.map(contentText).join('\n');
  const common = {
    title: title ?? toolCall.toolCallId,
    ...(rawInput !== undefined && { input: rawInput }),
    ...(shown && { shown }),
  };
  if (kind === 'execute' && command !== undefined)
    return { name: PERMIT.execute, arguments: { command, ...common } };
  const changes = kind === 'edit' || kind === 'delete' || kind === 'move';
  if (changes && path !== undefined && others.length === 0)
    return { name: PERMIT.edit, arguments: { path, ...(kind !== 'edit' && { kind }), ...common } };
  return { name: PERMIT.other, arguments: { kind: kind ?? 'other', ...common } };
}

/** Arguments of a call that name a file. */
const PATHS = [
  ...['filePath', 'filepath', 'file_path', 'path', 'from', 'source', 'oldPath', 'old_path'],
  ...['to', 'target', 'destination', 'newPath', 'new_path'],
];
const FOLDERS = ['cwd', 'workdir', 'workingDirectory', 'working_directory', 'directory', 'dir'];

/** The command is all of the call: it has no arguments beside it, runs in the folder of the agent, and sets no variables. */
function isPlain(input: Readonly<Record<string, unknown>>, directory: string): boolean {
  const folders = FOLDERS.flatMap((name) => input[name] ?? []);
  const isHere = folders.every(
    (one) => typeof one === 'string' && resolve(directory, one) === resolve(directory),
  );
  return input.args === undefined && isHere && Object.keys(input.env ?? {}).length === 0;
}

function textIn(input: Readonly<Record<string, unknown>>, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = input[name];
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return value.join(' ');
  }
  return undefined;
}

/** ACP-PERMISSION-2, ACP-PERMISSION-3 */
export function permission(
  options: readonly PermissionOption[],
  isAllowed: boolean,
): RequestPermissionResponse {
  const wanted = isAllowed ? ['allow_once'] : ['reject_once', 'reject_always'];
  const option = wanted.flatMap((kind) => options.find((one) => one.kind === kind) ?? [])[0];
  return { outcome: option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' } };
}
