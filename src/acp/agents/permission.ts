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
 *                  that names several paths, or a command with arguments beside it, is `permit_other`: no rule sees all of it.
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
    ...['filePath', 'filepath', 'file_path', 'path'].flatMap((name) => textIn(input, name) ?? []),
  ];
  const [path, ...others] = new Set(named.map((one) => resolve(directory, one)));
  const command = input.args === undefined ? textIn(input, 'command', 'cmd') : undefined;
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
    return { name: PERMIT.edit, arguments: { path, ...common } };
  return { name: PERMIT.other, arguments: { kind: kind ?? 'other', ...common } };
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
