/**
 * What a release tag is checked against: both packages have its version, and the changelog has a dated section for it.
 *
 * RELEASE-1 A tag is `v` and a version. A section is `## [VERSION] - YYYY-MM-DD`; it ends at the next `## `.
 */

interface Package {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface Release {
  readonly tag: string;
  readonly changelog: string;
  readonly parleyd: Package;
  readonly createParleyd: Package;
}

/** The text of the release; throws an error that names everything that does not fit the tag. */
export function releaseText({ tag, changelog, parleyd, createParleyd }: Release): string {
  const version = tag.replace(/^v/, '');
  const text = sectionOf(changelog, version);
  const needed = createParleyd.dependencies?.parleyd;
  const wrong = [
    tag !== `v${parleyd.version}` && `package.json has the version ${parleyd.version}`,
    createParleyd.version !== parleyd.version &&
      `packages/create-parleyd/package.json has the version ${createParleyd.version}`,
    needed !== `^${parleyd.version}` &&
      `create-parleyd depends on parleyd ${needed}, not ^${parleyd.version}`,
    text === null && `CHANGELOG.md has no section \`## [${version}] - YYYY-MM-DD\``,
    text === '' && `the section ${version} of CHANGELOG.md is empty`,
  ].filter((problem) => problem !== false);
  if (text === null || wrong.length > 0) throw new Error(`${tag} cannot be released: ${wrong.join('; ')}`);
  return text;
}

function sectionOf(changelog: string, version: string): string | null {
  const sections = changelog.split(/^(?=## )/m);
  const found = sections.find((section) => {
    const [, named] = /^## \[([^\]]+)\] - \d{4}-\d\d-\d\d$/m.exec(section.split('\n', 1)[0] ?? '') ?? [];
    return named === version;
  });
  return found === undefined ? null : found.slice(found.indexOf('\n')).trim();
}
