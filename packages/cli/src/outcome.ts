/** The exit code of a command that has not thrown. Commands change it from 0. */
export interface Outcome {
  code: number
}
