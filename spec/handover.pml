/* A hold moves to another process: the new hold has a greater token, and the process that gave it away may be
 * paused and write later. Exhausted by Spin, as fencing.pml. With -DSAME_TOKEN both processes write under
 * one token, and an acknowledged update is lost. */
#ifndef MOVES
#define MOVES 3
#endif

byte granted = 1;      /* the greatest token; the first hold has it */
byte owner = 1;        /* the token of the hold that the service knows */
byte mark = 0;
byte value = 0;
byte acknowledged = 0;


proctype process(byte token) {
  byte seen, next;
  bool accepted = true, moved = false;
  do
  :: accepted ->
    /* A unit of work: open, read, write. The process may believe in its hold long after it moved. */
    atomic {
      if
      :: mark <= token -> mark = token
      :: else -> accepted = false
      fi
    }
    if
    :: accepted ->
      seen = value;
      atomic {
        if
        :: mark <= token ->
          value = seen + 1; acknowledged++;
          assert(value >= acknowledged)
        :: else -> accepted = false
        fi
      };
      if
      :: acknowledged >= 4 -> break
      :: acknowledged < 4 -> skip
      fi
    :: else -> break
    fi
  :: accepted && !moved && granted < MOVES && owner == token ->
    /* The service: adopt answers a new hold with a greater token, and the old one is lost. */
    atomic {
#ifdef SAME_TOKEN
      next = token; granted++;
#else
      granted++; next = granted;
#endif
      owner = next; moved = true;
      run process(next)
    }
  :: else -> break
  od
}

init { run process(1) }
