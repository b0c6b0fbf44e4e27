/** The address of a worker's built file. */
declare module '*?sharedworker&url' {
  const address: string;
  export default address;
}
