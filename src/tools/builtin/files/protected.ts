import { realpathSync } from 'node:fs';
import { basename, sep } from 'node:path';
import { foldPath } from '../../../kernel/index.ts';

/**
 * Paths whose content is executed, or decides what may be executed, without another check: a write there is risky,
 * whatever the configuration says about the tool. A name matches any path component; a final `*` matches any suffix.
 */
export const PROTECTED_NAMES: readonly string[] = [
  // Version control and its hooks.
  ...['.git', '.gitconfig', '.gitmodules', '.githooks', '.husky', '.hg', '.svn', '.pre-commit-config.yaml'],
  // Secrets and access.
  ...['.env*', '.ssh', '.gnupg', '.netrc', '.aws', '.kube', '.docker', '.pypirc'],
  // Executed by package managers and editors.
  ...['.npmrc', '.yarnrc*', '.pnpmfile.cjs', '.config', '.vscode', '.idea', '.devcontainer', '.mcp.json'],
  // Continuous integration.
  ...['.github', '.gitlab', '.gitlab-ci.yml', '.gitea', '.forgejo', '.circleci', '.buildkite', '.ci'],
  ...['.travis.yml', '.drone.yml', '.woodpecker*', 'Jenkinsfile', 'azure-pipelines.yml'],
  ...['bitbucket-pipelines.yml', '.azure-pipelines', '.teamcity'],
  // Start-up files of shells.
  ...[
    '.profile',
    '.bash*',
    '.zsh*',
    '.zprofile',
    '.zlogin',
    '.zlogout',
    '.ksh*',
    '.csh*',
    '.tcshrc',
    '.login',
  ],
  ...['.inputrc', '.xprofile', '.xinitrc', '.xsession*'],
];

export interface Protection {
  /** Besides `PROTECTED_NAMES`, in the same form. */
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

/** The components that protect an absolute path below `root`. A policy rule must name each of them. */
export function protectedBy(root: string, path: string, { names, folders }: Protection): readonly string[] {
  const patterns = [...PROTECTED_NAMES, ...names].map(foldPath);
  const below = path.slice(root.length).split(sep);
  const byName = below.filter((name) => name !== '' && patterns.some((pattern) => fits(pattern, name)));
  const byFolder = folders.flatMap((given) => {
    const folder = realOf(given);
    if (!isInsideFolded(folder, path)) return [];
    return [folder !== root && isInside(root, folder) ? basename(folder) : NO_NAME];
  });
  return [...byName, ...byFolder];
}

/** No rule can name it. */
const NO_NAME = sep;

function fits(pattern: string, name: string): boolean {
  const folded = foldPath(name);
  return pattern.endsWith('*') ? folded.startsWith(pattern.slice(0, -1)) : folded === pattern;
}

function realOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder;
  }
}
