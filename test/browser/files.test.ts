import { readFile } from 'node:fs/promises';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type FilePart, filesOf, type MessageEntry } from '../../src/conversation/index.ts';
import { chromiumPath } from '../support/browser.ts';
import { layCable } from '../support/cable.ts';
import { gate } from '../support/gate.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { pngOf, WITH_SCRIPT } from '../support/uploaded-files.ts';
import { message, type Stage, sharedStage, textOf, write } from './support.ts';

/** A file as a page gets it. */
interface Given {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

const png = (name: string, width = 300, height = 200): Given => ({
  ...{ name, mimeType: 'image/png', buffer: pngOf(width, height) },
});
const text = (name: string, content = 'a line', mimeType = 'text/plain'): Given => ({
  ...{ name, mimeType, buffer: Buffer.from(content) },
});

const HOSTILE = '../..\\up\u202egpj.exe\n<img src=x onerror=alert(1)>\u0007.txt';
const LIMIT = 3_000_000;

/** As the clipboard and the pointer give files: `paste` or `drop`. Answers whether the page took them. */
function give(
  page: Page,
  type: 'paste' | 'drop',
  files: readonly Given[],
  texts: Record<string, string> = {},
) {
  const given = files.map((file) => ({ ...file, buffer: [...file.buffer] }));
  return page.evaluate<boolean>(`(() => {
    const transfer = new DataTransfer();
    for (const { name, mimeType, buffer } of ${JSON.stringify(given)})
      transfer.items.add(new File([new Uint8Array(buffer)], name, { type: mimeType }));
    for (const [format, content] of ${JSON.stringify(Object.entries(texts))}) transfer.setData(format, content);
    const options = { bubbles: true, cancelable: true, clipboardData: transfer, dataTransfer: transfer };
    return ${type === 'paste'}
      ? !document.getElementById('composer').dispatchEvent(new ClipboardEvent('paste', options))
      : !document.body.dispatchEvent(new DragEvent('drop', options));
  })()`);
}

const chosen = (page: Page): Locator => page.locator('.composer .chosen-files li');
const isUploaded = (page: Page, count: number) =>
  expect.poll(() => page.locator('.composer .chosen-files li.uploaded').count()).toBe(count);
const choose = (page: Page, ...files: readonly Given[]) =>
  page
    .locator('.composer input[type=file]')
    .first()
    .setInputFiles([...files]);
const field = (page: Page) => page.getByLabel('Message', { exact: true });

/** A picture that is loaded. */
const isShown = (picture: Locator) =>
  expect
    .poll(() =>
      picture.evaluate((one: unknown) => {
        const { complete, naturalWidth } = one as { complete: boolean; naturalWidth: number };
        return complete && naturalWidth > 0;
      }),
    )
    .toBe(true);

/** The messages of people in the log, when it has so many. */
async function messagesIn(stage: Stage, conversation: string, count = 1): Promise<MessageEntry[]> {
  await expect.poll(async () => (await read(stage, conversation)).length).toBe(count);
  return read(stage, conversation);
}

async function read(stage: Stage, conversation: string): Promise<MessageEntry[]> {
  const { entries = [] } = await stage.api<{ entries?: MessageEntry[] }>(
    'GET',
    `conversations/${conversation}/entries`,
  );
  return entries.filter(({ type, role }) => type === 'message' && role === 'user');
}

/** A program uploads them, and posts them in one message. */
async function postFiles(
  stage: Stage,
  conversation: string,
  ...files: readonly Given[]
): Promise<FilePart[]> {
  const parts: FilePart[] = [];
  for (const { name, buffer } of files) {
    const query = new URLSearchParams({ name });
    const answer = await fetch(`${stage.url}/api/blobs?${query}`, {
      method: 'PUT',
      body: new Uint8Array(buffer),
    });
    parts.push((await answer.json()) as FilePart);
  }
  await stage.post(conversation, '', { parts, includeInContext: false });
  return parts;
}

describe.skipIf(chromiumPath === null)('files in the message field', () => {
  const stage = sharedStage(
    { settings: { blobs: { maxBytes: LIMIT } } },
    /status of (40[039]|413)|net::ERR_/,
  );

  it('several pasted files are uploaded, shown with name and size, and sent in their order without a text', async () => {
    const page = await stage.look('#/c/pasted');
    await field(page).waitFor();
    expect(await give(page, 'paste', [png('one.png'), png('two.png', 100, 400), text('notes.txt')])).toBe(
      true,
    );
    await isUploaded(page, 3);
    expect(await chosen(page).allInnerTexts()).toEqual([
      expect.stringMatching(/one\.png\s+\d+ B/),
      expect.stringMatching(/two\.png\s+\d+ B/),
      expect.stringMatching(/notes\.txt\s+6 B/),
    ]);
    await isShown(chosen(page).first().locator('img'));
    await field(page).press('Enter');
    const sent = page.locator('article.by-person');
    await expect.poll(() => sent.locator('.thumbnail').count()).toBe(2);
    await expect
      .poll(() => textOf(sent.locator('.files')))
      .toMatch(/notes\.txt\s+text\/plain, 6 B\s*Download/);
    expect(await chosen(page).count()).toBe(0);
    await page.reload();
    await isShown(sent.locator('img').last());
    const [posted] = await messagesIn(stage, 'pasted');
    expect(posted?.content).toBe('');
    expect(filesOf(posted ?? {}).map(({ name, width, height }) => [name, width, height])).toEqual([
      ['one.png', 300, 200],
      ['two.png', 100, 400],
      ['notes.txt', undefined, undefined],
    ]);
  });

  itLong('a pasted text of an office program stays a text, though a picture of it comes along', async () => {
    const page = await stage.look('#/c/office');
    await field(page).waitFor();
    expect(await give(page, 'paste', [png('image.png')], { 'text/rtf': '{}', 'text/plain': 'cells' })).toBe(
      false,
    );
    expect(await chosen(page).count()).toBe(0);
  });

  it('files are dropped anywhere in the page or chosen with the button, sent with a text, and can be removed', async () => {
    const page = await stage.look('#/c/dropped');
    await field(page).waitFor();
    expect(await give(page, 'drop', [text('dropped.txt')])).toBe(true);
    const picker = page.waitForEvent('filechooser');
    await page.getByTitle('Add files').click();
    await (await picker).setFiles([png('chosen.png'), text('other.txt')]);
    await isUploaded(page, 3);
    await page.getByRole('button', { name: 'Remove other.txt' }).press('Enter');
    await expect.poll(() => chosen(page).count()).toBe(2);
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer');
    await write(page, 'look at these');
    await expect.poll(() => page.locator('article.by-person .files li').count()).toBe(2);
    const [posted] = await messagesIn(stage, 'dropped');
    expect(posted?.content).toBe('look at these');
    expect(filesOf(posted ?? {}).map(({ name }) => name)).toEqual(['dropped.txt', 'chosen.png']);
    await page.evaluate("location.hash = '#/inbox'"); // else the browser would open the file instead of the page
    await page.getByRole('heading', { name: 'Inbox' }).waitFor();
    expect(await give(page, 'drop', [text('dropped.txt')])).toBe(true);
    await page.getByRole('alert').getByText('Files go into a message').waitFor();
  });

  itLong('the first message of a conversation may be a file, which gives the title', async () => {
    const page = await stage.look('#/new');
    await choose(page, png('first.png'));
    await isUploaded(page, 1);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('article.by-person .thumbnail').waitFor();
    await expect.poll(() => textOf(page.locator('.head h2'))).toBe('first.png');
  });

  itLong('the share of an upload that is sent is shown, and read by screen readers', async () => {
    const page = await stage.look('#/c/progress');
    await field(page).waitFor();
    const network = await page.context().newCDPSession(page);
    const limits = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 400_000 };
    await network.send('Network.emulateNetworkConditions', limits);
    await choose(page, text('large.txt', 'x'.repeat(1_500_000)));
    const bar = page.getByRole('progressbar', { name: 'Upload of large.txt' });
    const shares = new Set<number>();
    await expect
      .poll(
        async () => shares.add(await bar.evaluate((one: unknown) => (one as { value: number }).value)).size,
      )
      .toBeGreaterThan(3);
    expect([...shares].toSorted((a, b) => a - b)).toEqual([...shares]);
    expect(await textOf(chosen(page))).toMatch(/1\.5 MB, \d+ %/);
    expect(await page.getByRole('status').allInnerTexts()).toContainEqual(
      expect.stringMatching(/large\.txt: is being uploaded/),
    );
    await network.send('Network.emulateNetworkConditions', { ...limits, uploadThroughput: -1 });
    await isUploaded(page, 1);
    expect(await bar.count()).toBe(0);
  });

  it('an upload that is cut off begins again with the connection, and its message waits for it and is sent once', async () => {
    const cable = await layCable(stage.url);
    try {
      const page = await stage.look('#/c/cut', {}, cable.url);
      await field(page).waitFor();
      cable.hold();
      await choose(page, png('plan.png'));
      await chosen(page).waitFor();
      await write(page, 'with a plan');
      const kept = page.locator('.kept-posts li.waiting');
      expect(await textOf(kept)).toMatch(/with a plan[\s\S]*plan\.png[\s\S]*Waits to be sent/);
      cable.cut();
      await page.locator('.away', { hasText: 'Not connected' }).waitFor();
      expect(await kept.count()).toBe(1);
      cable.release();
      cable.restore();
      await isShown(page.locator('article.by-person', { hasText: 'with a plan' }).locator('img'));
      const posted = await messagesIn(stage, 'cut');
      expect(posted.map((entry) => filesOf(entry).map(({ name }) => name))).toEqual([['plan.png']]);
    } finally {
      await cable.close();
    }
  });

  itLong('a file that the daemon refuses says why, is not sent, and the text stays', async () => {
    const page = await stage.look('#/c/refused');
    await field(page).waitFor();
    await choose(page, text('large.bin', 'x'.repeat(LIMIT + 1)), text('empty.txt', ''));
    await expect.poll(() => page.locator('.chosen-files .refused').count()).toBe(2);
    expect(await textOf(chosen(page).first())).toMatch(/3.0 MB[\s\S]*blobs\.maxBytes/);
    expect(await textOf(chosen(page).last())).toMatch(/is empty/);
    await write(page, 'see this');
    expect(await textOf(page.getByRole('alert'))).toBe(
      'Not sent: remove what was refused: large.bin, empty.txt',
    );
    expect(await field(page).inputValue()).toBe('see this');
    for (const name of ['large.bin', 'empty.txt'])
      await page.getByRole('button', { name: `Remove ${name}` }).press('Enter');
    await field(page).press('Enter');
    await message(page, 'see this').first().waitFor();
  });

  itLong(
    'files that were not uploaded before a reload are named, and are chosen again, in a draft and in a kept post',
    async () => {
      const page = await stage.look('#/c/reloaded');
      await field(page).waitFor();
      await choose(page, png('there.png'));
      await isUploaded(page, 1);
      await page.route('**/api/blobs*', (route) => route.abort());
      await choose(page, text('kept.txt'));
      await chosen(page).nth(1).waitFor();
      await write(page, 'kept text');
      await page.locator('.kept-posts li.waiting').waitFor();
      await choose(page, text('draft.txt'));
      await field(page).fill('draft text');
      await page.unroute('**/api/blobs*');
      await page.reload();
      const kept = page.locator('.kept-posts li.refused').first();
      expect(await textOf(kept)).toMatch(/kept text[\s\S]*Not sent: choose again, or remove: kept\.txt/);
      expect(await textOf(chosen(page))).toMatch(/draft\.txt[\s\S]*lost with the reload/);
      await chosen(page).getByLabel('Choose draft.txt again').setInputFiles(text('draft.txt'));
      await kept.getByLabel('Choose kept.txt again').setInputFiles(text('kept.txt'));
      await isUploaded(page, 1);
      await kept.getByRole('button', { name: 'Send again' }).click();
      await message(page, 'kept text').first().waitFor();
      await field(page).press('Enter');
      await message(page, 'draft text').first().waitFor();
      const names = (await messagesIn(stage, 'reloaded', 2)).map((entry) =>
        filesOf(entry).map(({ name }) => name),
      );
      expect(names).toEqual([['there.png', 'kept.txt'], ['draft.txt']]);
    },
  );

  itLong(
    'a folder that is dropped is refused in words, and uploads continue with the next file',
    async () => {
      const page = await stage.look('#/c/folder');
      await field(page).waitFor();
      await page.evaluate(`(() => {
      const { slice } = Blob.prototype;
      Blob.prototype.slice = function (...range) {
        const part = slice.apply(this, range);
        if (this.type === 'x/folder') part.arrayBuffer = () => Promise.reject(new Error('NotReadableError'));
        return part;
      };
    })()`);
      await choose(page, text('folder', 'x', 'x/folder'), text('next.txt'));
      await isUploaded(page, 1);
      expect(await textOf(page.locator('.chosen-files .refused'))).toMatch(/folder[\s\S]*cannot be read/);
    },
  );
});

describe.skipIf(chromiumPath === null)('files in the thread', () => {
  const stage = sharedStage({}, /status of 404/);

  it('"why?" names the pictures that the model was not shown under what was left out', async () => {
    const [part] = await postFiles(stage, 'unseen', png('mug.png', 30, 20));
    await stage.post('unseen', 'Here it is.', { parts: [{ type: 'text', text: 'Here it is.' }, part] });
    const page = await stage.look('#/c/unseen');
    const answer = message(page, 'Noted: Here it is.');
    await answer.hover();
    await answer.getByRole('link', { name: /Why did/ }).click();
    const section = page.locator('.answer-panel section').filter({ hasText: 'What was left out' });
    expect(await textOf(section)).toMatch(
      /What was left out\s+The file mug\.png of \d+ was not shown: its model takes no such files/,
    );
  });

  it('a message says which of its agents is shown no pictures', async () => {
    const parts = await postFiles(stage, 'blind', png('mug.png', 30, 20), text('notes.txt'));
    const page = await stage.look('#/c/blind');
    const line = (content: string) => message(page, content).first().locator('.reads-later');
    for (const [content, part] of [
      ['Look', parts[0]],
      ['Read', parts[1]],
    ] as const)
      await stage.post('blind', content, { parts: [{ type: 'text', text: content }, part] });
    expect(await textOf(line('Look'))).toBe('Lena Lead is shown no pictures: its model takes none.');
    await message(page, 'Noted: Read').waitFor();
    expect(await line('Read').count()).toBe(0);
  });

  const open = async (conversation: string, ...files: readonly Given[]) => {
    await postFiles(stage, conversation, ...files);
    const page = await stage.look(`#/c/${conversation}`);
    await page.locator('.files').first().waitFor();
    return page;
  };

  const loaded = (page: Page) =>
    page.evaluate<number>(
      "[...document.querySelectorAll('.files img')].filter((one) => one.naturalWidth > 0).length",
    );

  itLong('pictures have their size before they are loaded: nothing moves', async () => {
    for (const size of [
      [1_200, 300],
      [40, 900],
      [5, 5],
      [640, 480],
    ] as const) {
      await postFiles(stage, 'still', png('shape.png', ...size));
      await stage.post('still', `below ${size}`, { includeInContext: false });
    }
    await postFiles(stage, 'still', png('a.png', 800, 300), png('b.png', 300, 800), text('c.txt'));
    await stage.post('still', 'the end', { includeInContext: false });
    const page = await stage.look();
    const { open: release, passed: held } = gate();
    await page.route('**/blobs/**', async (route) => {
      await held;
      await route.continue();
    });
    await page.evaluate("location.hash = '#/c/still'");
    await message(page, 'the end').waitFor();
    await page.waitForTimeout(500);
    const places = () =>
      page
        .locator('.place')
        .evaluateAll((all) => all.map((one) => Object.values(one.getBoundingClientRect().toJSON()).join()));
    const before = await places();
    await page.evaluate(`window.shifts = [];
      new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map(({ value }) => value))).observe({ type: 'layout-shift' })`);
    expect(await loaded(page)).toBe(0);
    release();
    await isShown(page.locator('.files img').last());
    expect(await places()).toEqual(before);
    expect(await page.evaluate('window.shifts')).toEqual([]);
  });

  itLong('pictures far from the screen are not loaded', async () => {
    await postFiles(
      stage,
      'lazy',
      ...Array.from({ length: 30 }, (_, n) => png(`${n}.png`, 1_000, 1_000 + n)),
    );
    const page = await stage.look();
    await page.evaluate("location.hash = '#/c/lazy'");
    await isShown(page.locator('.files img').last());
    await page.waitForTimeout(300);
    expect(await page.locator('.thumbnail').count()).toBe(30);
    expect(await loaded(page)).toBeLessThan(25);
    await page.locator('.thumbnail').first().scrollIntoViewIfNeeded();
    await isShown(page.locator('.thumbnail').first().locator('img'));
  });

  itLong('the viewer is used with the keyboard, Esc closes it alone, and the focus returns', async () => {
    const page = await open(
      'viewer',
      png('one.png'),
      text('between.txt'),
      png('two.png', 50, 900),
      png('three.png'),
    );
    const second = page.getByRole('button', { name: /^Show two\.png \(image\/png, \d+ B, 50 × 900\)/ });
    await second.press('Enter');
    const viewer = page.getByRole('dialog', { name: 'Pictures' });
    expect(await textOf(viewer)).toMatch(/2 of 3[\s\S]*two\.png/);
    await isShown(viewer.locator('img'));
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => textOf(viewer)).toMatch(/3 of 3[\s\S]*three\.png/);
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => textOf(viewer)).toMatch(/1 of 3[\s\S]*one\.png/);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => textOf(viewer)).toMatch(/two\.png/);
    await page.keyboard.press('t'); // keys of the page do nothing
    await viewer.locator('.picture').click();
    await page.keyboard.press('Escape');
    await viewer.waitFor({ state: 'detached' });
    expect(page.url()).toMatch(/#\/c\/viewer$/);
    expect(await page.locator('.thread').count()).toBe(1);
    expect(await page.evaluate('document.activeElement.ariaLabel')).toMatch(/^Show two\.png/);
  });

  itLong(
    'the hidden characters of a name are visible, and its file is saved under a name without them',
    async () => {
      const page = await open('hostile', text(HOSTILE, 'harmless'));
      const name = page.locator('.files .file-name');
      expect(await textOf(name)).toBe('../..\\up\\u202egpj.exe\\n<img src=x onerror=alert(1)>\\u0007.txt');
      expect(await name.locator('mark').allInnerTexts()).toEqual(['\\u202e', '\\n', '\\u0007']);
      const saved = page.waitForEvent('download');
      await page.getByRole('link', { name: /^Download / }).click();
      const file = await saved;
      expect(file.suggestedFilename()).toMatch(/^[\w.,()= -]+\.txt$/);
      expect(await readFile(await file.path(), 'utf8')).toBe('harmless');
      await field(page).waitFor();
      await choose(page, text(HOSTILE));
      expect(await chosen(page).locator('mark').allInnerTexts()).toEqual(['\\u202e', '\\n', '\\u0007']);
    },
  );

  const RUN = [
    [
      'drawing.svg',
      'image/svg+xml',
      `<svg xmlns="http://www.w3.org/2000/svg"><script>document.title='hacked'</script></svg>`,
    ],
    ['page.html', 'text/html', WITH_SCRIPT],
    ['picture.png', 'image/png', WITH_SCRIPT],
  ] as const;
  it.each(hasLongTests ? RUN : RUN.slice(0, 1))(
    '%s, which a browser would run, is only downloaded',
    async (name, mimeType, content) => {
      const page = await open(`run-${name.replace('.', '-')}`, text(name, content, mimeType));
      expect(await page.locator('.thumbnail, .files img').count()).toBe(0);
      const shown = () =>
        page
          .context()
          .pages()
          .map((one) => one.url());
      const before = shown();
      const saved = page.waitForEvent('download');
      await page.getByRole('link', { name: `Download ${name}` }).click();
      expect((await saved).suggestedFilename()).toBe(name);
      expect(await readFile(await (await saved).path(), 'utf8')).toBe(content);
      expect(shown()).toEqual(before);
      expect(await page.title()).not.toBe('hacked');
    },
  );

  itLong('a picture that cannot be loaded says why, in its place', async () => {
    await postFiles(stage, 'gone', png('gone.png'));
    const page = await stage.look();
    const refusal = { code: 'BLOB_DAMAGED', detail: 'the stored bytes are damaged', hint: '' };
    await page.route('**/blobs/**', (route) => route.fulfill({ status: 404, json: refusal }));
    await page.evaluate("location.hash = '#/c/gone'");
    await expect
      .poll(() => textOf(page.locator('.thumbnail')))
      .toBe('Not shown: the stored bytes are damaged');
  });
});

describe.skipIf(chromiumPath === null)('files of a daemon with tokens', () => {
  const TOKEN = 'posts-it-and-more';
  const stage = sharedStage(
    {
      settings: { http: { publishers: { post: 'alice' } } },
      env: { PARLEY_HTTP_TOKENS_POST: TOKEN },
      token: TOKEN,
    },
    /status of 401/,
  );

  it('pictures are uploaded and loaded with the token of the page, which no address contains', async () => {
    const page = await stage.look('#/c/token');
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    await page.getByLabel('This daemon requires a token').fill(TOKEN);
    await page.keyboard.press('Enter');
    await field(page).waitFor();
    await choose(page, png('mine.png'));
    await isUploaded(page, 1);
    await field(page).press('Enter');
    await page.locator('article.by-person .thumbnail').waitFor();
    await page.reload();
    await isShown(page.locator('article.by-person img'));
    expect(addresses.filter((address) => address.includes('/blobs'))).toHaveLength(2);
    expect(addresses.filter((address) => address.includes(TOKEN))).toEqual([]);
  });
});
