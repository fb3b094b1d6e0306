import { run } from './main.js'

// The file that this package starts in processes of its own.
void run(process.argv.slice(2))
