import { z } from 'zod';
import {
  isConversationTool,
  modeSchema,
  NAME_PATTERN,
  SLUG_PATTERN,
  TOOL_NAME_OR_PATTERN,
} from '../../conversation/index.ts';
import { DURATION_FORM, DURATION_PATTERN, hasVisible } from '../../kernel/index.ts';
import { http, ingress, nats, publisher, publisherName } from './http-file.ts';
import { count, modelFileSchema } from './model-file.ts';

/**
 * The shape of `parley.yaml` and of an agent's front matter, with defaults and descriptions. The descriptions become
 * `config/parley.schema.json`, which editors show.
 *
 * SCHEMA-1 Every key is optional; its default is beside it.
 * SCHEMA-2 An unknown key is refused by name.
 */

const PHASE_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const SUBJECT_PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;
/** At most 48 characters, so that no name of a tool is cut within the name of its server. */
const SERVER_PATTERN = /^(?=.{1,48}$)[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/;

const slug = z.string().regex(SLUG_PATTERN, 'an agent slug: lower-case letters, digits and -, at most 64');
const phaseName = z
  .string()
  .regex(PHASE_PATTERN, 'a phase name: lower-case letters, digits, _ and -, at most 64');
export const toolName = z
  .string()
  .regex(
    TOOL_NAME_OR_PATTERN,
    'a tool name (letters, digits, _ and -, at most 64), or mcp__<server>__* for all of one MCP server',
  );

const contextKeys = {
  contextMaxMessages: count.nullable().describe('At most so many messages of history; null: as many as fit'),
  contextMaxChars: count.nullable().describe('At most so many characters of history; null: as many as fit'),
  summaryModel: z
    .string()
    .min(1)
    .nullable()
    .describe('A key of models: writes what stands for what does not fit; null: an extract, without a model'),
  summaryTimeoutMs: z.number().positive().describe('How long it may take; then the extract stands'),
  includeToolResultsInContext: z.boolean().describe('false: results read [result omitted: recall <index>]'),
  includeCollapsedUiEventsInContext: z.boolean().describe('true: collapsed entries are shown to agents too'),
};

const context = z.strictObject({
  contextMaxMessages: contextKeys.contextMaxMessages.default(null),
  contextMaxChars: contextKeys.contextMaxChars.default(null),
  summaryModel: contextKeys.summaryModel.default(null),
  summaryTimeoutMs: contextKeys.summaryTimeoutMs.default(60_000),
  includeToolResultsInContext: contextKeys.includeToolResultsInContext.default(true),
  includeCollapsedUiEventsInContext: contextKeys.includeCollapsedUiEventsInContext.default(false),
});
export type ContextConfig = Readonly<z.infer<typeof context>>;

const limits = z.strictObject({
  hopsPerTrigger: z.int().min(0).default(16).describe('Agents woken by agents, per message of a person'),
  modelCallsPerTurn: count.default(50).describe('Model calls of one turn'),
  turnSeconds: z.number().positive().default(900).describe('How long one turn may take'),
  tokensPerConversation: count.nullable().default(null).describe('Input and output together; null: no limit'),
  usdPerConversation: z.number().positive().nullable().default(null).describe('Needs prices; null: no limit'),
});
export type LimitsConfig = Readonly<z.infer<typeof limits>>;

const retry = z
  .strictObject({
    attempts: count.default(4).describe('Tries in all, the first included'),
    baseMs: z.number().positive().default(500).describe('The first pause; each next one is twice as long'),
    maxMs: z.number().positive().default(30_000).describe('No pause is longer'),
  })
  .refine((value) => value.maxMs >= value.baseMs, { path: ['maxMs'], error: 'at least baseMs' });
export type RetryConfig = Readonly<z.infer<typeof retry>>;

const milliseconds = count.max(MAX_TIMER_MS);

const duration = z.string().regex(DURATION_PATTERN, DURATION_FORM).nullable().default(null);

const agents = z
  .strictObject({
    silenceMs: milliseconds
      .default(30_000)
      .describe('How long an agent may be silent before its turn is offered again'),
    heartbeatMs: milliseconds.default(5_000).describe('How often an agent at work is to give a sign of life'),
  })
  .refine((value) => value.heartbeatMs < value.silenceMs, {
    path: ['heartbeatMs'],
    error: 'less than silenceMs',
  });
export type RemoteAgentsConfig = Readonly<z.infer<typeof agents>>;

const phase = z.strictObject({
  description: z.string().min(1).optional().describe('What is done in this phase; agents read it'),
  next: z.array(phaseName).optional().describe('Phases that an agent may enter from here'),
});
export type PhaseFile = z.infer<typeof phase>;

const mcpServer = z
  .strictObject({
    command: z.string().min(1).optional().describe('A program that speaks MCP on its standard streams'),
    args: z.array(z.string()).optional(),
    env: z.record(z.string(), z.string()).optional().describe('Variables for that program'),
    url: z.url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' }).optional(),
    headers: z.record(z.string(), z.string()).optional().describe('Headers of each request to url'),
    trustReadOnlyHint: z
      .boolean()
      .optional()
      .describe('True: a tool that this server marks as reading only is safe'),
  })
  .refine((server) => (server.command === undefined) !== (server.url === undefined), 'either command or url')
  .refine(
    (server) => server.url === undefined || (!server.args && !server.env),
    'args and env only with command',
  )
  .refine((server) => server.command === undefined || !server.headers, 'headers only with url');
export type McpServerFile = z.infer<typeof mcpServer>;

/** Rules and risks do not apply to tools about the conversation, so these are refused there. */
const externalTool = toolName.refine((name) => !isConversationTool(name), {
  error:
    'a tool that acts on the world (one about the conversation is allowed by `tools` of the agent alone)',
});

const pattern = z.string().refine(isRegularExpression, 'a regular expression');

const policyRule = z
  .strictObject({
    agent: slug.optional().describe('Default: every agent'),
    tool: externalTool.describe('One that acts on the world, or mcp__<server>__*'),
    match: z
      .record(z.string(), pattern)
      .optional()
      .describe('Regular expressions that arguments must match; where allow is true, the whole of them: ^…$'),
    allow: z.boolean().describe('true: runs without asking. false: is refused without asking'),
  })
  .superRefine(({ allow, match = {} }, context) => {
    for (const [argument, source] of allow ? Object.entries(match) : []) {
      const whole = wholePattern(source);
      if (whole === source || !isRegularExpression(source)) continue;
      const message = `a pattern of the whole argument where allow is true, such as ${whole}`;
      context.addIssue({ code: 'custom', path: ['match', argument], message });
    }
  });

const tools = z.strictObject({
  project: z
    .string()
    .min(1)
    .default('.')
    .describe('What @project/ means: a folder, from where the daemon was started'),
  mcpServers: z
    .record(
      z.string().regex(SERVER_PATTERN, 'a server name: letters, digits, - and single _, at most 48'),
      mcpServer,
    )
    .default({})
    .describe('Their tools appear as mcp__<server>__<tool>'),
  risk: z
    .record(externalTool, z.enum(['safe', 'risky']))
    .default({})
    .describe('By tool, or by mcp__<server>__*; a name wins over a pattern. Unknown tools are risky'),
  policy: z
    .array(policyRule)
    .default([])
    .describe('The first rule that fits decides about a risky call; without one, a person is asked'),
  protected: z
    .array(z.string().regex(/^[^/*\0]+\*?$/, 'a name without /, perhaps with * at its end'))
    .default([])
    .describe(
      'Further names of files and folders that only a person, or a rule that names them, lets tools write',
    ),
});

/** `parley.yaml` (SCHEMA-1, SCHEMA-2). */
export const configFileSchema = z.strictObject({
  defaultAgent: slug
    .optional()
    .describe('Answers when nothing else decides (default: pm if there is one, else the first)'),
  subjectPrefix: z
    .string()
    .regex(SUBJECT_PATTERN, 'letters, digits, _ and -, with dots between tokens')
    .default('parley')
    .describe('What every NATS subject begins with'),
  models: z.record(z.string().min(1), modelFileSchema).optional().describe('By the name that agents use'),
  context: context.prefault({}).describe('What agents are shown of a long conversation'),
  limits: limits.prefault({}).describe('Where every chain of calls ends'),
  retry: retry.prefault({}).describe('Of model calls, and of tools that are safe'),
  phases: z
    .record(phaseName, phase)
    .default({})
    .describe('Added to the built-in table, or replacing rows of it'),
  tools: tools.prefault({}),
  approvals: z
    .strictObject({
      approvers: z
        .array(z.string().refine((name) => name === '*' || NAME_PATTERN.test(name), 'a publisher name, or *'))
        .optional()
        .describe(
          'Publishers who may answer approvals; * is every publisher. Unset: * with a managed server, else the operator alone',
        ),
      ownRequests: z
        .boolean()
        .optional()
        .describe(
          'Whether a publisher may approve a call that answers its own request. Unset: true with a managed server, else false',
        ),
      expireAfterMs: milliseconds
        .nullable()
        .default(null)
        .describe('How long a call waits for approval before it counts as not allowed; null: for ever'),
    })
    .prefault({}),
  publishers: z
    .record(publisherName, publisher)
    .default({})
    .describe('What each publisher may ask of the daemon, by name; default is for everybody else'),
  ingress: ingress.prefault({}).describe('Posts on their way into the logs'),
  retention: z
    .strictObject({
      conversations: duration.describe('Age of the newest entry at which a conversation is deleted'),
      deadLetters: duration.describe('Age at which a dead letter is deleted'),
    })
    .prefault({})
    .describe('What is deleted by its age, such as 90d; null: nothing'),
  shutdown: z
    .strictObject({ graceMs: z.int().min(0).default(10_000).describe('For running turns, after a stop') })
    .prefault({}),
  nats: nats.prefault({}).describe('The NATS server, and who to be there; flags and variables win'),
  sharing: z
    .strictObject({
      silenceMs: z
        .int()
        .min(500)
        .max(600_000)
        .default(10_000)
        .describe('After which others take over from a daemon that shares their logs'),
    })
    .prefault({})
    .describe('Several daemons on one nats-server (--store jetstream)'),
  jetstream: z
    .strictObject({
      replicas: z
        .int()
        .min(1)
        .max(5)
        .optional()
        .describe('Servers of a cluster that keep each stream and bucket: 1, 3 or 5; unset: as they are'),
    })
    .prefault({})
    .describe('What Parley keeps on the NATS server'),
  http: http.prefault({}).describe('Who may use the HTTP doors'),
  agents: agents.prefault({}).describe('How agents in other processes (runtime: bus) are waited for'),
});
export type ConfigFile = z.infer<typeof configFileSchema>;

/** The front matter of `agents/<slug>.md` (SCHEMA-1, SCHEMA-2). */
export const agentFileSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[^[\]\p{Cc}\p{Zl}\p{Zp}]{1,64}$/u, 'one line of at most 64 characters without [ and ]')
    .refine((name) => name.trim() === name, 'a name without spaces around it')
    .refine(hasVisible, 'a name with a visible character')
    .optional(),
  description: z.string().default(''),
  phases: z.array(z.string()).default([]),
  modes: z.array(modeSchema).default([]),
  model: z.string().min(1).default('default'),
  tools: z.array(toolName).default([]),
  runtime: z.enum(['local', 'bus']).default('local'),
  context: z.strictObject(contextKeys).partial().default({}),
});
export type AgentFile = z.infer<typeof agentFileSchema>;

/**
 * A rule that allows must match the whole argument: `^git status` would also allow `git status; id`, and `^a|b$` everything
 * that begins with `a`.
 */

function isRegularExpression(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false; // the constructor throws on a syntax error only
  }
}

/** The pattern anchored at both ends; an anchored pattern is returned unchanged. */
function wholePattern(source: string): string {
  const { alternatives, endsAnchored } = outline(source);
  if (alternatives === 1) {
    const start = source.startsWith('^') ? '' : '^';
    return `${start}${source}${endsAnchored ? '' : '$'}`;
  }
  const inner = source.slice(source.startsWith('^') ? 1 : 0, endsAnchored ? -1 : undefined);
  return `^(${inner})$`;
}

/** The number of top-level alternatives, and whether the pattern ends with an anchor. */
function outline(source: string): { readonly alternatives: number; readonly endsAnchored: boolean } {
  let alternatives = 1;
  let depth = 0;
  let isClass = false;
  let endsAnchored = false;
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at];
    endsAnchored = character === '$' && !isClass;
    if (character === '\\') at += 1;
    else if (isClass) isClass = character !== ']';
    else if (character === '[') isClass = true;
    else if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
    else if (character === '|' && depth === 0) alternatives += 1;
  }
  return { alternatives, endsAnchored };
}
