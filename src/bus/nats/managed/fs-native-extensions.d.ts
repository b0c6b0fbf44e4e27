/** The part of the package that is used here; it ships no types. */
declare module 'fs-native-extensions' {
  /** Takes the lock of the whole file for this open file description; false when another one holds it. */
  export function tryLock(fd: number): boolean;
}
