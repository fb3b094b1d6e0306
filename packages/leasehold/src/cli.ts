import { main } from './cli/main.js'

void main(process.argv.slice(2)).then((code) => {
  // Everything is said and done: a connection to a service that no longer answers must not keep this process alive.
  process.stdout.write('', () => process.exit(code))
})
