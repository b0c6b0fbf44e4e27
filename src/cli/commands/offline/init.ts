import { existsSync } from 'node:fs';
import { constants, copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import { messageOf, PACKAGE, VERSION } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { quoted } from '../../options/options.ts';
import { ask } from '../../output/terminal.ts';
import { plural } from '../../render/text.ts';

/**
 * Writes a project that runs offline: the files of `templates/common`, then those of one template.
 *
 * INIT-1 No existing file is changed, but a `package.json` gets the scripts and the dependency that it lacks. A folder with files that do not
 *        belong to a new project is refused.
 */

const TEMPLATES = ['team', 'single', 'workflow', 'support'] as const;
type Template = (typeof TEMPLATES)[number];

/** What npm, git and an earlier `parley up` leave in a folder before `parley init`. */
const MAY_EXIST = ['.git', '.DS_Store', 'node_modules', 'package.json', 'package-lock.json', 'data'];

/** A project of a checkout uses the checkout, which may be newer than every published version. */
const IS_CHECKOUT = existsSync(join(PACKAGE, 'src'));

const OFFER_HINT = '`parley init` writes a team; answer no to run the one that ships with Parley';

interface Project {
  readonly directory: string;
  readonly template: Template;
  /** Relative to the directory. */
  readonly files: readonly string[];
}

export function addInit(program: Command, act: Act): void {
  const added = program
    .command('init')
    .description('write a project that runs offline: agents, a tool, a test')
    .argument('[dir]', 'a new or empty folder (default: the working directory)')
    .addOption(
      new Option('--template <name>', 'what the project shows').choices(TEMPLATES).default(TEMPLATES[0]),
    );
  act(added, async (context, directory: string | undefined, { template }: { template: Template }) => {
    const { workingDirectory } = context.io;
    const project = await createProject(resolve(workingDirectory, directory ?? '.'), template);
    context.result(project, () => renderProject(project, workingDirectory));
  });
}

/**
 * `up` on a terminal, in an empty folder: asks whether to write a project there. Otherwise `up` runs the shipped team, and
 * the notice about it names `parley init`.
 */
export async function offerProject(context: Context, folder: string | undefined): Promise<void> {
  const { stdin, stderr, env, workingDirectory } = context.io;
  const isNamed = folder !== undefined || Boolean(env.PARLEY_CONFIG);
  if (isNamed || stdin.isTTY !== true || stderr.isTTY !== true) return;
  if ((await foreignNames(workingDirectory)).length > 0) return;
  const question = `${workingDirectory} is empty. Write a team of your own there? [Y/n] `;
  const answer = await ask(context.io, stderr, question);
  if (answer === null) throw new ParleyError('USAGE', 'the question was not answered', { hint: OFFER_HINT });
  if (/^n/i.test(answer)) return;
  const { files } = await createProject(workingDirectory, TEMPLATES[0]);
  const first = IS_CHECKOUT ? `; before its programs and tests, run \`${BUILD}\`` : '';
  context.note(`${plural(files.length, 'file')} written; README.md explains them${first}`);
}

/** Throws `USAGE` if the directory contains other files (INIT-1). */
async function createProject(directory: string, template: Template): Promise<Project> {
  const names = await foreignNames(directory);
  if (names.length > 0) {
    const found = names.length > 8 ? [...names.slice(0, 8), `${names.length - 8} more`] : names;
    throw new ParleyError('USAGE', `${directory} is not empty: ${found.join(', ')}`, {
      hint: 'name a new folder: `parley init NEW_FOLDER`',
    });
  }
  const files: string[] = [];
  const made: string[] = [];
  try {
    for (const part of ['common', template]) files.push(...(await copyTemplate(part, directory, made)));
    if (existsSync(join(directory, 'package.json'))) await completePackage(join(directory, 'package.json'));
    else files.push(await writePackage(directory));
  } catch (error) {
    for (const path of made) await rm(path, { recursive: true, force: true });
    throw new ParleyError('USAGE', `${directory} cannot be written: ${messageOf(error)}`, { cause: error });
  }
  return { directory, template, files: files.sort() };
}

/** None if the directory is missing. */
async function foreignNames(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new ParleyError('USAGE', `${directory} is not a folder that can be read: ${error.message}`);
  });
  return names.filter((name) => !MAY_EXIST.includes(name) && !/^parleyd-.*\.tgz$/.test(name));
}

/** Adds what it makes to `made`. npm leaves a file named `.gitignore` out of a package, so the template's is `_gitignore`. */
async function copyTemplate(name: string, directory: string, made: string[]): Promise<string[]> {
  const source = join(PACKAGE, 'templates', name);
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries) {
    if (!entry.isFile() || entry.name === 'package.json') continue;
    const from = join(entry.parentPath, entry.name);
    const file = relative(source, from).replace('_gitignore', '.gitignore');
    const folder = await mkdir(dirname(join(directory, file)), { recursive: true });
    if (folder !== undefined) made.push(folder);
    await copyFile(from, join(directory, file), constants.COPYFILE_EXCL);
    made.push(join(directory, file));
    files.push(file);
  }
  return files;
}

const projectPackage = async () =>
  JSON.parse(await readFile(join(PACKAGE, 'templates/common/package.json'), 'utf8'));

/** In a project, this version or a newer compatible one. */
const DEPENDENCY = { parleyd: IS_CHECKOUT ? `file:${PACKAGE}` : `^${VERSION}` };

/** That of a folder in which npm was used before. An invalid one is left to npm, which reports it. */
async function completePackage(file: string): Promise<void> {
  const found = await readFile(file, 'utf8')
    .then(JSON.parse)
    .catch(() => null);
  if (typeof found !== 'object' || found === null) return;
  const { scripts, allowScripts } = await projectPackage();
  const dependencies = { ...DEPENDENCY, ...found.dependencies };
  const text = { allowScripts, ...found, scripts: { ...scripts, ...found.scripts }, dependencies };
  await writeFile(file, `${JSON.stringify(text, null, 2)}\n`);
}

async function writePackage(directory: string): Promise<string> {
  const own = await projectPackage();
  const text = { ...own, name: packageName(basename(directory)), dependencies: DEPENDENCY };
  await writeFile(join(directory, 'package.json'), `${JSON.stringify(text, null, 2)}\n`, { flag: 'wx' });
  return 'package.json';
}

function packageName(folder: string): string {
  const name = folder.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-');
  return name.replace(/^[^a-z0-9]+/, '') || 'parley-project';
}

const BUILD = `npm --prefix ${quoted(PACKAGE)} run build`;
const ABOUT_BUILD =
  'The first command builds the checkout of Parley that the project uses, for its programs and tests. Run it again after a change of the source.';

function renderProject({ directory, template, files }: Project, workingDirectory: string): string {
  const parley = 'npm run --silent parley --';
  const isInstalled = existsSync(join(directory, 'node_modules', 'parleyd'));
  const steps = [
    ...(IS_CHECKOUT ? [BUILD] : []),
    ...(directory === workingDirectory ? [] : [`cd ${quoted(relative(workingDirectory, directory))}`]),
    ...(isInstalled ? [] : ['npm install']),
    'npm start',
  ];
  return [
    `${plural(files.length, 'file')} written to ${directory} (template ${template}). Next:`,
    '',
    ...steps.map((step) => `  ${step}`),
    '',
    ...(IS_CHECKOUT ? [ABOUT_BUILD, ''] : []),
    'In a second terminal, in that folder:',
    '',
    `  ${parley} chat`,
    '',
    'No key is needed: without one, answers come from config/script.yaml. README.md explains the files.',
  ].join('\n');
}
