import { hideValues, monotonicClock } from '../../kernel/index.ts';
import type { Enclose } from '../hide-folder.ts';
import { Acceptance, type AcceptedTools } from './acceptance.ts';
import type { Link } from './connection.ts';
import { reasonFor } from './reason.ts';
import { McpServer } from './server.ts';
import {
  DEFAULT_TIMES,
  type McpLog,
  type McpServerSettings,
  type McpTimes,
  type SecretValue,
} from './settings.ts';
import { type McpToolbox, ServerTools } from './toolbox.ts';
import { ChildTransport } from './transport/child-transport.ts';
import { HttpTransport } from './transport/http-transport.ts';

export interface McpToolsOptions {
  /** By name; names match `[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*`. */
  readonly servers: Readonly<Record<string, McpServerSettings>>;
  /** Working directory of child processes, absolute. */
  readonly project: string;
  /** Environment of child processes, besides their own settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Wraps the start of child processes; default: no wrapper. */
  readonly enclose?: Enclose | undefined;
  readonly log: McpLog;
  /** What is hidden in tools and errors of the servers, besides the secrets of their settings. */
  readonly secrets?: readonly string[];
  /** Absent: all tools are accepted. */
  readonly accepted?: AcceptedTools;
  readonly times?: Partial<McpTimes>;
}

export function createMcpTools(options: McpToolsOptions): McpToolbox {
  const times = { ...DEFAULT_TIMES, ...options.times };
  const acceptance = options.accepted ? new Acceptance(options.accepted, options.log) : null;
  const servers = (onChange: () => void) =>
    Object.entries(options.servers).map(([name, settings]) => {
      const own = Object.values(settings.transport === 'http' ? settings.headers : settings.env);
      const hide = hideValues([...own.map((value) => value.reveal()), ...(options.secrets ?? [])]);
      return new McpServer({
        name,
        trustsReadOnlyHint: settings.trustReadOnlyHint === true,
        link: () => ({ ...linkTo(settings, options, times), hide }),
        times,
        reason: reasonFor(hide),
        log: options.log,
        elapsed: monotonicClock,
        random: Math.random,
        onListed: (tools) => acceptance?.listed(name, tools),
        onChange,
      });
    });
  return new ServerTools(servers, acceptance);
}

function linkTo(settings: McpServerSettings, options: McpToolsOptions, times: McpTimes): Omit<Link, 'hide'> {
  const { endMs, answerGraceMs } = times;
  if (settings.transport === 'http') {
    const headers = revealed(settings.headers);
    return {
      transport: new HttpTransport({ url: settings.url, headers, endMs, answerGraceMs }),
      probe: true,
    };
  }
  const { command, args } = settings;
  const env = { ...options.environment, ...revealed(settings.env) };
  const { project: directory, enclose } = options;
  const transport = new ChildTransport({ command, args, env, directory, endMs, enclose });
  return { transport, probe: false, lastWords: () => transport.lastWords() };
}

function revealed(values: Readonly<Record<string, SecretValue>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.reveal()]));
}
