import { type Explained, type FileCache, shownExplanation } from '../../agents/index.ts';
import type { ExplainedRequest, FilePart } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

/** What `explain` shows: the request, and the content blocks that the program of a coding agent is told of it (ACP-PROMPT-6). */
export async function shownWithPrompt(
  { explanation }: Extract<Explained, { readonly ok: true }>,
  body: boolean | 'prompt' | undefined,
  files: FileCache,
): Promise<ExplainedRequest> {
  const shown = shownExplanation(explanation, body === true);
  const { told } = shown.report;
  if (!told?.takes) return shown;
  const { promptFor } = await import('../../acp/index.ts'); // with packages that few daemons need
  const request = {
    messages: explanation.messages,
    missed: told.messages,
    tools: shown.report.tools.map((name) => ({ function: { name } })),
  };
  const { json, sent } = await promptFor(request, told.session === 'new', told.takes, (file) =>
    contentOf(file, files),
  );
  const prompt = {
    hash: sent.hash,
    sent: told.hash === undefined ? ('unknown' as const) : told.hash === sent.hash,
  };
  const report = { ...shown.report, told: { ...told, prompt } };
  return body === 'prompt' ? { messages: [], report, body: json } : { ...shown, report };
}

async function contentOf(file: FilePart, files: FileCache): Promise<AsyncIterable<Uint8Array>> {
  const loaded = await files.load([file]);
  if ('code' in loaded) throw new ParleyError(loaded.code, loaded.message, { hint: loaded.hint });
  const base64 = Buffer.from(loaded.get(file.sha256) ?? []).toString('latin1');
  return (async function* () {
    yield Buffer.from(base64, 'base64');
  })();
}
