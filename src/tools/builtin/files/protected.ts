import { realpathSync } from 'node:fs';
import { basename, sep } from 'node:path';
import { foldPath } from '../../../kernel/index.ts';

/**
 * The table of protected names (`docs/guides/security.md` is generated from it). A name matches any component
 * of a path, in any case and Unicode form; one `*` in it matches any text.
 *
 * PROTECTED-1  Reading or writing a name of `secrets` needs a person, whatever the configuration says about the tool.
 * PROTECTED-2  So does writing a name of `programs`, and every other name that begins with a dot and is not `harmless`:
 *              its content is executed, or decides what is executed or who has access.
 * PROTECTED-3  A list is never complete. The boundary is a list of paths that agents may write (docs/threat-model.md).
 */
interface Names {
  readonly about: string;
  readonly names: readonly string[];
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

export const SECRETS: readonly Names[] = [
  { about: 'variables', names: ['.env*', '*.env', '.envrc', '.secret*'] },
  {
    about: 'keys',
    names: words(`
      *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.nk *.creds id_rsa* id_dsa* id_ecdsa*
      id_ed25519* .ssh .gnupg .vault-token .htpasswd`),
  },
  {
    about: 'accounts of services',
    names: words(`
      credentials credentials.json credentials.toml credentials.y* *_credentials.json secrets.json
      secrets.toml secrets.y* auth.json service-account* service_account* .aws .azure .gcloud .oci
      .kube kubeconfig .docker .dockercfg .terraform.d .terraformrc *.tfstate *.tfstate.backup
      *.tfvars .pulumi .s3cfg .boto .fly .config`),
  },
  {
    about: 'accounts of package managers and version control',
    names: words(`
      .npmrc .yarnrc* .pypirc .netrc _netrc .git .gitconfig .git-credentials .hg .svn .gem .bundle
      .m2 .gradle .nuget NuGet.Config .composer .mcp.json`),
  },
  { about: 'databases and shells', names: ['.pgpass', '.my.cnf', '.mylogin.cnf', '.*_history'] },
  { about: 'Parley', names: ['parley.yaml', 'connection.json', 'http-token'] },
];

/** Only names without a dot at their beginning; the others follow from PROTECTED-2. */
export const PROGRAMS: readonly Names[] = [
  {
    about: 'continuous integration',
    names: words(`
      Jenkinsfile* azure-pipelines* bitbucket-pipelines* appveyor.yml buildspec* cloudbuild*
      codemagic.yaml wercker.yml`),
  },
  { about: 'hooks of version control', names: ['lefthook*'] },
  {
    about: 'start-up files',
    names: words(`
      sitecustomize.py usercustomize.py *.pth *.desktop _vimrc _gvimrc crontab`),
  },
  { about: 'installed packages', names: ['node_modules'] },
  { about: 'access', names: ['authorized_keys*', 'known_hosts', 'sudoers*'] },
];

/** Names with a dot at their beginning that neither start programs nor contain secrets. */
export const HARMLESS: readonly string[] = words(`
  .gitignore .gitkeep .keep .mailmap .editorconfig .nojekyll .well-known .dockerignore
  .eslintignore .npmignore .prettierignore .stylelintignore .vercelignore .gcloudignore
  .helmignore .slugignore .nvmrc .node-version .python-version .ruby-version .env.example
  .env.sample .env.template .env.dist`);

/**
 * A folder with this file, `objects` and `refs` is a bare repository: `git status` there runs the programs that its
 * `config` names. Only the file itself is protected, since folders have this name too.
 */
export const BARE_REPOSITORY = 'HEAD';

export interface Protection {
  /** Further names that are risky to write, in the same form. */
  readonly names: readonly string[];
  /** Absolute paths: the folder of the configuration. */
  readonly folders: readonly string[];
}

export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** As a case-insensitive file system compares paths. */
export function isInsideFolded(folder: string, path: string): boolean {
  return isInside(foldPath(folder), foldPath(path));
}

/** The components that protect an absolute path below `root` from reading. A policy rule must name each of them. */
export function secretIn(root: string, path: string): readonly string[] {
  return componentsOf(root, path).filter(isSecret);
}

/** As `secretIn`, from writing. */
export function protectedBy(root: string, path: string, { names, folders }: Protection): readonly string[] {
  const below = componentsOf(root, path);
  const own = names.map(foldPath);
  const byName = below.filter((name, place) => {
    const isFile = place === below.length - 1;
    return isProtected(name) || fitsOne(own, name) || (isFile && fitsOne([foldPath(BARE_REPOSITORY)], name));
  });
  const byFolder = folders.flatMap((given) => {
    const folder = realOf(given);
    if (!isInsideFolded(folder, path)) return [];
    return [folder !== root && isInside(root, folder) ? basename(folder) : NO_NAME];
  });
  return [...byName, ...byFolder];
}

/** No rule can name it. */
const NO_NAME = sep;

function componentsOf(root: string, path: string): string[] {
  return path
    .slice(root.length)
    .split(sep)
    .filter((name) => name !== '');
}

const folded = (rows: readonly Names[]) => rows.flatMap(({ names }) => names.map(foldPath));
const SECRET_NAMES = folded(SECRETS);
const PROGRAM_NAMES = folded(PROGRAMS);
const HARMLESS_NAMES = HARMLESS.map(foldPath);

function isSecret(name: string): boolean {
  return !fitsOne(HARMLESS_NAMES, name) && fitsOne(SECRET_NAMES, name);
}

function isProtected(name: string): boolean {
  if (fitsOne(HARMLESS_NAMES, name)) return false;
  return foldPath(name).startsWith('.') || fitsOne(SECRET_NAMES, name) || fitsOne(PROGRAM_NAMES, name);
}

function fitsOne(patterns: readonly string[], name: string): boolean {
  const given = foldPath(name);
  return patterns.some((pattern) => {
    const [start = '', end] = pattern.split('*');
    if (end === undefined) return given === pattern;
    return given.length >= start.length + end.length && given.startsWith(start) && given.endsWith(end);
  });
}

function realOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder;
  }
}
