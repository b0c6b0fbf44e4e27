import { describe, expect, it } from 'vitest';
import { perTest } from '../../support/lifetime.ts';
import { openGateway } from './support.ts';

describe('the export of a conversation over HTTP', () => {
  const { gateway, daemon } = perTest(() => openGateway());

  it('an export is a file with the title and the id of the conversation as its name, in the chosen format', async () => {
    const author = { kind: 'person', id: 'alice', name: 'Alice' };
    const createdAt = '2026-03-01T10:00:00.000Z';
    const entry = { index: 0, id: 'a', createdAt, type: 'message', role: 'user', author, content: 'hi' };
    daemon.answer = () => ({ ok: true, body: { conversation: 'demo', length: 1, entries: [entry] } });
    const get = async (query: string) => {
      const answer = await fetch(`${gateway.url}/api/conversations/demo/export${query}`);
      const named = answer.headers.get('content-disposition');
      return [answer.status, answer.headers.get('content-type'), named, await answer.text()];
    };
    const markdown = '## Alice (2026-03-01 10:00 UTC, entry 0)\n\n> hi';
    const asMarkdown = [200, 'text/markdown; charset=utf-8', 'attachment; filename="demo.md"', markdown];
    expect(await get('')).toEqual(asMarkdown);
    expect(await get('?format=markdown')).toEqual(asMarkdown);
    expect((await get('?format=openai')).slice(1)).toEqual([
      'application/json; charset=utf-8',
      'attachment; filename="demo.json"',
      '[{"role":"user","content":"hi","name":"Alice"}]',
    ]);
    expect((await get('?format=jsonl')).slice(2)).toEqual([
      'attachment; filename="demo.jsonl"',
      JSON.stringify(entry),
    ]);
    const titled = (title: string) => ({ ...entry, index: 1, id: 'b', type: 'title-set', title });
    const encoded = (name: string) => `demo.md"; filename*=UTF-8''${encodeURIComponent(name)}`;
    for (const [title, name] of [
      ['Fix the login page', 'Fix-the-login-page-demo.md"'],
      ['  ../../etc: "pass\u202ewd"?\r\n', 'etc-pass-wd-demo.md"'],
      ['🙂', 'demo.md"'],
      ['word '.repeat(40), `${'word-'.repeat(12)}demo.md"`],
      ['Größe & 大小', encoded('Größe-大小-demo.md')],
    ]) {
      const entries = [entry, titled(title ?? '')];
      daemon.answer = () => ({ ok: true, body: { conversation: 'demo', length: 2, entries } });
      expect((await get(''))[2]).toBe(`attachment; filename="${name}`);
    }
    expect((await get('?format=pdf'))[0]).toBe(400);
    daemon.answer = () => ({ ok: false, refusal: { code: 'NOT_FOUND', message: 'no', hint: '' } });
    expect((await get(''))[0]).toBe(404);
  });
});
