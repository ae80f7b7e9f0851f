/** Names of budgets that belong to a group. A host cannot contain a space, so that no host has the name of a group. */
const PREFIX = "group ";

export function groupName(group: string): string {
  return `${PREFIX}${group}`;
}

export function isGroupName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** The group of such a name; undefined when it is the name of a host. */
export function groupOfName(name: string): string | undefined {
  return isGroupName(name) ? name.slice(PREFIX.length) : undefined;
}
