import { z } from 'zod';
import { isConversationTool, SLUG_PATTERN, TOOL_NAME_OR_PATTERN } from '../../conversation/index.ts';
import { linearPattern, messageOf } from '../../kernel/index.ts';
import { bool, httpUrl, matching, text } from './parameters.ts';

/** The section `tools` of `parley.yaml` (`schema.ts`). */

/** At most 48 characters, so that no name of a tool is cut within the name of its server. */
const SERVER_PATTERN = /^(?=.{1,48}$)[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/;

export const slug = matching(SLUG_PATTERN, 'an agent slug: lower-case letters, digits and -, at most 64');
export const toolName = matching(
  TOOL_NAME_OR_PATTERN,
  'a tool name (letters, digits, _ and -, at most 64), or mcp__<server>__* for all of one MCP server',
);

const mcpServer = z
  .strictObject({
    command: text.optional().describe('A program that speaks MCP on its standard streams'),
    args: z.array(z.string()).optional().describe('Arguments of that program'),
    env: z.record(z.string(), z.string()).optional().describe('Variables for that program'),
    url: httpUrl.optional().describe('A server that speaks MCP over streamable HTTP'),
    headers: z.record(z.string(), z.string()).optional().describe('Headers of each request to url'),
    oauth: z
      .strictObject({
        clientId: text
          .optional()
          .describe(
            'The id of a client that is registered there; default: Parley registers one at each login',
          ),
        clientSecret: text.optional().describe('Its secret, with clientId'),
        scope: text.optional().describe('Scopes to ask for; default: those that the server names'),
        authorizationServer: z
          .url({ protocol: /^https?$/, error: 'a URL that begins with https://' })
          .optional()
          .describe('The only authorization server to accept; it may have a private address'),
      })
      .refine(({ clientId, clientSecret }) => clientId || !clientSecret, 'clientSecret only with clientId')
      .optional()
      .describe('For `parley mcp login`'),
    unhidden: bool
      .optional()
      .describe('true: this program also runs where the data directory cannot be hidden from it'),
    trustReadOnlyHint: bool.optional().describe('true: tools that this server marks as read-only are safe'),
  })
  .refine((server) => (server.command === undefined) !== (server.url === undefined), 'either command or url')
  .refine(
    (server) => server.url === undefined || (!server.args && !server.env),
    'args and env only with command',
  )
  .refine(
    (server) => server.command !== undefined || server.unhidden === undefined,
    'unhidden only with command',
  )
  .refine((server) => server.command === undefined || !server.headers, 'headers only with url')
  .refine((server) => server.command === undefined || !server.oauth, 'oauth only with url');
export type McpServerFile = z.infer<typeof mcpServer>;

/** Rules and risks do not apply to tools about the conversation, so these are refused there. */
const externalTool = toolName.refine((name) => !isConversationTool(name), {
  error:
    'a tool that acts on the world (one about the conversation is allowed by `tools` of the agent alone)',
});

const pattern = z.string().superRefine((source, context) => {
  const fault = patternFault(source);
  if (fault !== null) context.addIssue({ code: 'custom', message: `a regular expression ${fault}` });
});

const policyRule = z
  .strictObject({
    agent: slug.optional().describe('The agent that the rule is for; default: every agent'),
    tool: externalTool.describe(
      'A tool that acts on the world, or mcp__<server>__* for all tools of one server',
    ),
    match: z
      .record(z.string(), pattern)
      .optional()
      .describe(
        'By argument, a regular expression without lookahead and backreferences. With allow: true it must match the whole argument: ^…$',
      ),
    allow: bool.describe('true: the call runs without approval. false: the call is refused'),
  })
  .superRefine(({ allow, match = {} }, context) => {
    for (const [argument, source] of allow ? Object.entries(match) : []) {
      const whole = wholePattern(source);
      if (whole === source || patternFault(source) !== null) continue;
      const message = `a pattern of the whole argument where allow is true, such as ${whole}`;
      context.addIssue({ code: 'custom', path: ['match', argument], message });
    }
  });

export const tools = z.strictObject({
  project: text
    .default('.')
    .describe('The folder of @project/, relative to the working directory of the daemon'),
  mcpServers: z
    .record(matching(SERVER_PATTERN, 'a server name: letters, digits, - and single _, at most 48'), mcpServer)
    .default({})
    .describe('Their tools appear as mcp__<server>__<tool>'),
  risk: z
    .record(externalTool, z.enum(['safe', 'risky']))
    .default({})
    .describe(
      'By tool, or by mcp__<server>__*; a name overrides a pattern. Other tools of MCP servers are risky',
    ),
  policy: z
    .array(policyRule)
    .default([])
    .describe(
      'The first rule that fits decides whether a call runs; without a rule, risky calls need approval',
    ),
  unhidden: bool
    .default(false)
    .describe(
      'true: where the system cannot hide the data directory from programs, shell and MCP servers run all the same, and can read it and operate the daemon. false: they do not run there',
    ),
  loginKey: matching(/^[0-9a-f]{64}$/i, 'a key of 64 hexadecimal digits, as of `openssl rand -hex 32`')
    .optional()
    .describe('Encrypts what `parley mcp login` keeps; default: the file `key` beside it'),
  protected: z
    .array(matching(/^[^/*\0]+\*?$/, 'a name without /, perhaps with * at its end'))
    .default([])
    .describe(
      'Further names of files and folders, such as deploy.sh or release*, that tools write only after approval',
    ),
});

/** Null: it can be matched. Else what is wrong, for `a regular expression …`. */
function patternFault(source: string): string | null {
  try {
    linearPattern(source);
    return null;
  } catch (error) {
    if (error instanceof RangeError) return `that is smaller (${messageOf(error)})`;
    return error instanceof SyntaxError // of JavaScript: no regular expression at all
      ? `(${messageOf(error)})`
      : `without lookahead, backreferences and repeats above 1000 (${messageOf(error)})`;
  }
}

/**
 * The pattern anchored at both ends; an anchored pattern is returned unchanged. A rule that allows must match the whole
 * argument: `^git status` would also allow `git status; id`, and `^a|b$` everything that begins with `a`.
 */
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
