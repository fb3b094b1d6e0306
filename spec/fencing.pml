/* A guarded resource under every order of grants, pauses and late writes (docs/guards.md). Exhausted by Spin:
 *   spin -a fencing.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 * With -DNO_OPEN a unit reads without raising the mark first, and Spin shows a lost update. With -DNO_CHECK
 * the resource does not compare tokens. */
#ifndef HOLDS
#define HOLDS 3
#endif
/* Units of work of one hold, one after the other. */
#ifndef UNITS
#define UNITS 2
#endif

byte granted = 0;      /* the greatest token */
byte mark = 0;         /* stored with the resource */
byte value = 0;        /* each unit raises it by one */
byte acknowledged = 0;
byte refused = 0;

/* The resource: one step that compares, writes and stores the mark. */
inline store(token, new_value, accepted) {
  atomic {
    if
#ifdef NO_CHECK
    :: true ->
#else
    :: mark <= token ->
#endif
      mark = (token > mark -> token : mark); value = new_value; acknowledged++; accepted = true;
      assert(value >= acknowledged) /* no acknowledged unit is lost */
#ifndef NO_CHECK
    :: else -> refused++; accepted = false
#endif
    fi
  }
}

/* One holder. Between any two of its steps it may be paused for as long as the others like. */
proctype holder() {
  byte token, seen, unit = 0;
  bool accepted = true;
  atomic { granted++; token = granted }
  do
  :: unit < UNITS && accepted ->
    /* open: raise the mark before the first read */
#ifndef NO_OPEN
    atomic {
      if
      :: mark <= token -> mark = token
      :: else -> accepted = false
      fi
    }
#endif
    if
    :: accepted -> seen = value; store(token, seen + 1, accepted); unit++
    :: else -> skip
    fi
  :: else -> break
  od
}

init {
  byte i;
  atomic { for (i : 1 .. HOLDS) { run holder() } }
}
