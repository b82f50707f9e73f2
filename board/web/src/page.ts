/** One of the views. */
export interface Page {
  root: HTMLElement;
  /** The state or the list of runs changed. */
  update(): void;
  /** Runs have news; the list of runs has them already. */
  news(changed: Set<string>): void;
  /** A key that no field took. Whether it was used. */
  key?(event: KeyboardEvent): boolean;
  close(): void;
}
