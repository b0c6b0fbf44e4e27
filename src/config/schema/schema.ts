import { z } from 'zod';
import { modeSchema, NAME_PATTERN } from '../../conversation/index.ts';
import { DURATION_FORM, DURATION_PATTERN, hasVisible, MAX_TIMER_MS } from '../../kernel/index.ts';
import { blobs, http, ingress, nats, publisher, publisherName } from './http-file.ts';
import { modelFileSchema } from './model-file.ts';
import {
  agentParameters,
  bool,
  count,
  httpUrl,
  matching,
  positive,
  section,
  text,
  texts,
} from './parameters.ts';
import { slug, toolName, tools } from './tools-file.ts';

/**
 * The shape of `parley.yaml` and of an agent's front matter, with defaults and descriptions. The descriptions become
 * `config/parley.schema.json`, which editors show.
 *
 * SCHEMA-1 Every key is optional; its default is beside it.
 * SCHEMA-2 An unknown key is refused by name.
 */

const PHASE_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const SUBJECT_PATTERN = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

const phaseName = matching(PHASE_PATTERN, 'a phase name: lower-case letters, digits, _ and -, at most 64');

const contextKeys = {
  contextMaxMessages: count
    .nullable()
    .describe('Limit of messages of history in a request; null: as many as fit the window'),
  contextMaxChars: count
    .nullable()
    .describe('Limit of characters of history in a request; null: as many as fit the window'),
  summaryModel: text
    .nullable()
    .describe(
      'A key of models: the model that writes summaries of what does not fit; null: an extract is made without a model',
    ),
  summaryTimeoutMs: positive.describe('Time limit of a summary; after it, the extract is used'),
  includeToolResultsInContext: bool.describe(
    'false: results of tools are shown as [result omitted: recall <index>]',
  ),
  includeCollapsedUiEventsInContext: bool.describe('true: agents are shown collapsed entries too'),
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
  hopsPerTrigger: z
    .int()
    .min(0)
    .default(16)
    .describe('Handoffs, delegations and nodes in a chain that one message of a person started'),
  modelCallsPerTurn: count.default(50).describe('Model calls of one turn'),
  turnSeconds: positive
    .default(900)
    .describe('Time limit of one turn; it starts again after each wait for an answer'),
  tokensPerConversation: count
    .nullable()
    .default(null)
    .describe('Input and output tokens together; null: no limit'),
  usdPerConversation: positive
    .nullable()
    .default(null)
    .describe('Counts models that have a price; null: no limit'),
  hireDepth: z
    .int()
    .min(0)
    .default(2)
    .describe('Hires in a chain: 1 lets agents hire, 2 also those that they hired; 0: no agent can be hired'),
  hiredAgents: z.int().min(0).default(8).describe('Hired agents of a conversation that are not dismissed'),
});

const retry = z
  .strictObject({
    attempts: count.default(4).describe('Number of attempts, the first one included'),
    baseMs: positive.default(500).describe('The first pause; each further pause is twice as long'),
    maxMs: positive.default(30_000).describe('The longest pause'),
  })
  .refine((value) => value.maxMs >= value.baseMs, { path: ['maxMs'], error: 'at least baseMs' });

const milliseconds = count.max(MAX_TIMER_MS);

const duration = matching(DURATION_PATTERN, DURATION_FORM).nullable().default(null);

const agents = z
  .strictObject({
    silenceMs: milliseconds
      .default(30_000)
      .describe('Time without a heartbeat after which the turn is offered again'),
    heartbeatMs: milliseconds
      .default(5_000)
      .describe('Interval of the heartbeats that a working agent must send; less than silenceMs'),
  })
  .refine((value) => value.heartbeatMs < value.silenceMs, {
    path: ['heartbeatMs'],
    error: 'less than silenceMs',
  });
export type RemoteAgentsConfig = Readonly<z.infer<typeof agents>>;

const telemetry = z.strictObject({
  otlp: section('Where traces are sent', {
    endpoint: httpUrl
      .nullable()
      .default(null)
      .describe(
        'The address of a collector that speaks OTLP over HTTP, such as http://127.0.0.1:4318; null: no traces. OTEL_EXPORTER_OTLP_ENDPOINT overrides it',
      ),
    headers: z
      .record(z.string(), z.string())
      .default({})
      .describe('Headers of each request to the collector; a secret by reference to a variable'),
  }),
  content: bool
    .default(false)
    .describe('true: spans contain texts of posts and answers, and arguments and results of tools'),
});
export type TelemetryFile = z.infer<typeof telemetry>;

const phase = z.strictObject({
  description: text.optional().describe('What is done in this phase; shown to agents'),
  next: z.array(phaseName).optional().describe('Phases that an agent may enter from here'),
});
export type PhaseFile = z.infer<typeof phase>;

/** `parley.yaml` (SCHEMA-1, SCHEMA-2). */
export const configFileSchema = z.strictObject({
  defaultAgent: slug
    .optional()
    .describe(
      'The agent that answers when no other rule decides (default: pm if it exists, else the first slug)',
    ),
  subjectPrefix: matching(SUBJECT_PATTERN, 'letters, digits, _ and -, with dots between tokens')
    .default('parley')
    .describe(
      'The first part of every NATS subject. Daemons on one server need different prefixes, unless they share their work',
    ),
  models: z
    .record(text, modelFileSchema)
    .optional()
    .describe(
      'Models, by the name that agents use (default: gpt-5-mini if OPENAI_API_KEY is set, else the offline scripted model)',
    ),
  titleModel: text
    .nullable()
    .default(null)
    .describe(
      'A key of models: the model that writes the title of a conversation after its first answer; null: the first words of its first message',
    ),
  context: context
    .prefault({})
    .describe('What agents are shown of a long conversation. An agent can override these keys in its file'),
  limits: limits.prefault({}).describe('Limits of turns and conversations'),
  retry: retry.prefault({}).describe('Retries of model calls and of safe tools'),
  phases: z
    .record(phaseName, phase)
    .default({})
    .describe('Phases that are added to the built-in ones, or change them'),
  tools: tools.prefault({}).describe('Tools that act on the world, and when they run'),
  approvals: section('Who may approve risky calls', {
    approvers: z
      .array(z.string().refine((name) => name === '*' || NAME_PATTERN.test(name), 'a publisher name, or *'))
      .optional()
      .describe(
        'Publishers that may answer approvals; * is every publisher. Operators always may. Unset: * with a managed server, else none',
      ),
    ownRequests: bool
      .optional()
      .describe(
        'Whether a publisher may approve a call that answers its own request. Unset: true with a managed server, else false',
      ),
    expireAfterMs: milliseconds
      .nullable()
      .default(null)
      .describe('Time after which an unanswered approval expires; null: never'),
  }),
  publishers: z
    .record(publisherName, publisher)
    .default({})
    .describe(
      'Limits of each publisher, by name. The row default is for all others, and fills what a row omits',
    ),
  ingress: ingress.prefault({}).describe('Posts that are not in a log yet'),
  blobs: blobs.prefault({}).describe('Files in messages'),
  retention: section('Ages at which data is deleted, such as 90d (s, m, h, d, w); null: never', {
    conversations: duration.describe('Age of the newest entry at which a conversation is deleted'),
    deadLetters: duration.describe('Age at which a dead letter is deleted'),
  }),
  shutdown: section('How the daemon stops', {
    graceMs: z.int().min(0).default(10_000).describe('Time that running turns get to finish after a stop'),
  }),
  nats: nats
    .prefault({})
    .describe('The NATS server and its credentials; flags and variables override these keys'),
  sharing: section('Several daemons on one nats-server (--store jetstream)', {
    failureTimeoutMs: z
      .int()
      .min(500)
      .max(600_000)
      .default(8_000)
      .describe(
        'The failure timeout: a daemon without a heartbeat for this time is declared dead, and others take over its work',
      ),
  }),
  jetstream: section('Streams and buckets on the NATS server', {
    replicas: z
      .int()
      .min(1)
      .max(5)
      .optional()
      .describe(
        'Number of servers that keep each stream and bucket: 1, 3 or 5. Unset: existing ones are unchanged, new ones get 1',
      ),
  }),
  telemetry: telemetry.prefault({}).describe('Traces for an OpenTelemetry collector'),
  http: http.prefault({}).describe('HTTP: tokens, names and limits'),
  agents: agents.prefault({}).describe('Timeouts of agents in other processes (runtime: bus)'),
});
export type ConfigFile = z.infer<typeof configFileSchema>;

/** The front matter of `agents/<slug>.md` (SCHEMA-1, SCHEMA-2). */
export const agentFileSchema = z.strictObject({
  name: matching(/^[^[\]\p{Cc}\p{Zl}\p{Zp}]{1,64}$/u, 'one line of at most 64 characters without [ and ]')
    .refine((name) => name.trim() === name, 'a name without spaces around it')
    .refine(hasVisible, 'a name with a visible character')
    .optional()
    .describe('The name in conversations (default: the slug, titled)'),
  description: z.string().default('').describe('One line, shown to the other agents'),
  phases: z.array(z.string()).default([]).describe('Phases in which the agent answers'),
  modes: z.array(modeSchema).default([]).describe('Modes in which it answers if no other rule decides'),
  model: text.default('default').describe('A key of models in parley.yaml'),
  tools: z.array(toolName).default([]).describe('The tools of the agent, and no others'),
  answers: z
    .union([text, z.record(z.string(), z.unknown())])
    .optional()
    .describe(
      'The JSON Schema of its answers, or the name of a JSON file with it beside the file of the agent (default: any text)',
    ),
  clientTools: bool.default(true).describe('false: no message may bring tools of its own for this agent'),
  runtime: z
    .enum(['local', 'bus', 'acp'])
    .default('local')
    .describe('bus: the agent is a program of yours; acp: a coding agent that the daemon runs'),
  command: texts
    .min(1)
    .optional()
    .describe('With runtime: acp: the program and its arguments; it speaks the Agent Client Protocol'),
  cwd: matching(/^@project(\/|$)/, 'a folder of the project: @project/ and the way from there')
    .optional()
    .describe('With runtime: acp: where it works (default: @project/)'),
  env: z
    .record(z.string(), z.string())
    .optional()
    .describe('With runtime: acp: variables of its environment, which may name others as parameters do'),
  idleSeconds: positive
    .max(MAX_TIMER_MS / 1_000)
    .optional()
    .describe('With runtime: acp: a turn without any sign of it for so long fails (default: 600)'),
  absent: z
    .enum(['fail', 'wait'])
    .default('fail')
    .describe('What a turn does while the program is not connected (with runtime: bus)'),
  absentSeconds: positive
    .max(MAX_TIMER_MS / 1_000)
    .optional()
    .describe('How long a turn waits with absent: wait (default: until limits.turnSeconds)'),
  context: z
    .strictObject(contextKeys)
    .partial()
    .default({})
    .describe('Keys of context in parley.yaml that differ for this agent'),
  parameters: agentParameters.default({}).describe('Parameters of its model requests'),
});
export type AgentFile = z.infer<typeof agentFileSchema>;
