import type { Command } from 'commander';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import type { z } from 'zod';
import { createProgram } from '../../../src/cli/program.ts';
import { natsUsersSchema } from '../../../src/config/resolve/nats-users.ts';
import { workflowFileSchema } from '../../../src/config/resolve/workflows.ts';
import { agentFileSchema, configFileSchema } from '../../../src/config/schema/schema.ts';
import { scriptSchema } from '../../../src/models/scripted/script.ts';
import { blocksOf, codeSpansOf, type Page } from '../../support/pages.ts';
import { HASHES } from '../../support/server-users.ts';

/** What is wrong in the code of a document. */

const CHECKS: Readonly<Record<string, (text: string) => string[]>> = {
  json: (text) => failureOf(() => JSON.parse(text)),
  yaml: yamlFaults,
  yml: yamlFaults,
  markdown: agentFaults,
  js: syntaxFaults,
  ts: syntaxFaults,
  sh: commandFaults,
  // A block that is indented names no language: only its commands are recognized.
  '': commandFaults,
};

/** With the line at which the block begins. */
export function codeFaults(page: Page): string[] {
  const inBlocks = blocksOf(page).flatMap(({ language, text, line }) =>
    (CHECKS[language]?.(text) ?? []).map((fault) => `${page.path}:${line}: ${fault}`),
  );
  const inSpans = codeSpansOf(page).flatMap(commandFaults);
  return [...inBlocks, ...inSpans.map((fault) => `${page.path}: ${fault}`)];
}

function failureOf(work: () => unknown): string[] {
  try {
    work();
    return [];
  } catch (error) {
    return [String(error)];
  }
}

function syntaxFaults(text: string): string[] {
  const { diagnostics = [] } = ts.transpileModule(text, { reportDiagnostics: true });
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

/** A file of the configuration is known by its keys, and then held against its schema. */
function yamlFaults(text: string): string[] {
  const errors = parseAllDocuments(text).flatMap((document) => document.errors.map(({ message }) => message));
  if (errors.length > 0) return errors;
  const data: unknown = parse(asGiven(text));
  if (data === null || typeof data !== 'object') return [];
  const keys = Object.keys(data);
  if (keys.includes('rules')) return schemaFaults(scriptSchema, data);
  if (keys.includes('nodes')) return schemaFaults(workflowFileSchema, data);
  if (keys.includes('tenants')) return schemaFaults(natsUsersSchema, data);
  return schemaFaults(configFileSchema, data);
}

/** Replaces placeholders of secrets by values that the schema accepts. */
function asGiven(text: string): string {
  const variables = text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => name.padEnd(32, '-'));
  return variables.replaceAll(/"\$2a\$11\$…"/g, () => JSON.stringify(HASHES.alice));
}

/** An agent's file: front matter, then its persona. */
function agentFaults(text: string): string[] {
  const [, front] = /^---\n([\s\S]*?)^---$/m.exec(text) ?? [];
  return front === undefined ? [] : schemaFaults(agentFileSchema, parse(front));
}

function schemaFaults(schema: z.ZodType, data: unknown): string[] {
  const { error } = schema.safeParse(data);
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
}

const program = createProgram(
  { stdout: process.stdout, stderr: process.stderr } as unknown as Parameters<typeof createProgram>[0],
  () => async () => {},
);

/** `parley` as a command: at the start of a line, after a prompt, a pipe, `&&` or `$(`, or by npm. */
const CALL = /(?:^|[|;&(!] *|\$ |[A-Z_]+=\S* |--silent )parley (?:-- )?([a-z-].*)$/gm;

function commandFaults(text: string): string[] {
  const lines = text.replaceAll(/\s*\\\n\s*/g, ' ').replaceAll(/(^|\s)#.*$/gm, '$1');
  return [...lines.matchAll(CALL)].flatMap(([, words = '']) => faultsOfCall(words));
}

function faultsOfCall(call: string): string[] {
  // Quoted words, and what follows an operator or two spaces, do not belong to the command.
  const [own = ''] = call.replaceAll(/"[^"]*"|'[^']*'/g, 'WORD').split(/[|;&>)]| {2}/);
  const words = own.trim().split(/\s+/);
  let command: Command = program;
  for (const word of words) {
    const below = command.commands.find((candidate) => candidate.name() === word);
    if (!below) break;
    command = below;
  }
  if (command === program && !words[0]?.startsWith('--')) return [`there is no command parley ${words[0]}`];
  const options = [command, program].flatMap((one) => one.options.map(({ long }) => long));
  const taken = new Set([...options, '--help']);
  return words
    .filter((word) => /^--[a-z]/.test(word))
    .map((word) => word.replace(/[=\].,:…].*$/, ''))
    .filter((flag) => !taken.has(flag))
    .map((flag) => `parley ${command === program ? '' : command.name()} takes no ${flag}`);
}
