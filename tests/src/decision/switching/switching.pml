// SPDX-License-Identifier: Apache-2.0
/* The switching protocol for spin. Spin explores every interleaving of RANKS issuing threads, their control
   threads and the leader, over a network that delays, loses, repeats and reorders. Names tie the model to
   src/decision/switching: an inline has the name of the function that it models. check_model.sh compares the
   kinds of messages.

   A message is a bit that is set when the message is sent and is never cleared. Its receiver may read the bit
   at any later time, in any order and any number of times. If a rank waits and no sent message can help it,
   spin reports an invalid end state. So spin checks both agreement and "no rank waits for ever".

   -DVARIANT: 0 the protocol; 1 a rank switches on arrival; 2 an announced call number without a pledge; 3 a
   pledge before arming; 4 the structure is stepped on another thread; 5 a time-out decides alone; 6 a rank does
   not keep its answer to a peer; 7 the leader drops an attempt without a verdict (ends in an endless wait).
   -DCRASH: the leader or one other rank may die at any time. The program then aborts the communicator. */
#ifndef VARIANT
#define VARIANT 0
#endif
#ifndef RANKS
#define RANKS 3
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#define NEVER 15      /* No boundary is armed. */
#define UNDECIDED 255

mtype:switch_kind = { Prepare, Pledge, Refuse, Verdict, Ask };

/* The messages that were sent, by attempt (1..ATTEMPTS) and rank. */
typedef FromEach { bit by[RANKS] };
bit sent_prepare[ATTEMPTS + 1];
byte boundary_of[ATTEMPTS + 1];
FromEach sent_pledge[ATTEMPTS + 1];
bit verdict_commit[ATTEMPTS + 1];      /* A verdict of the leader, or of a peer that repeats it. */
bit verdict_abort[ATTEMPTS + 1];
bit called_off[ATTEMPTS + 1];          /* A verdict "no" of a peer. */

/* The CallGate of each rank. */
typedef Gate { byte calls; byte boundary; bit committed; byte next; byte version };
Gate gate[RANKS];

/* The SwitchMember of each rank. */
typedef Member { byte heard; byte pending; bit pledged; byte committed };
Member member[RANKS];

byte decided[CALLS];   /* By call: the decision of the first rank. */
#if VARIANT == 4
byte steps[RANKS];     /* The state of the structure that a decision reads. */
byte passed[RANKS];    /* The number of calls that have returned. */
#define STRUCTURE(r) steps[r]
#else
#define STRUCTURE(r) 0 /* The step ends before the call returns, so the state depends only on the call number. */
#endif
bit dead[RANKS];
bit aborted;           /* True once the communicator is aborted after a death. */

#define idle(r) (gate[r].boundary == NEVER)
#define reached(r) (gate[r].calls > gate[r].boundary)
#define may_pass(r, n) (n < gate[r].boundary || gate[r].committed || aborted)

inline Arm(r, e, a) {
  gate[r].next = a;
  gate[r].committed = 0;
  gate[r].boundary = e
}
inline Drop(r) {
  gate[r].boundary = NEVER;
  member[r].pending = 0;
  member[r].pledged = 0
}

inline TryPass(r, n) {
  if
  :: n >= gate[r].boundary && gate[r].committed ->
    gate[r].version = gate[r].next;
    gate[r].boundary = NEVER;
    gate[r].committed = 0
  :: else
  fi
}

/* An attempt's number also stands for the version that it brings. */
inline Decide(r, n) {
  if
  :: aborted
  :: !aborted && decided[n] == UNDECIDED -> decided[n] = gate[r].version * 16 + STRUCTURE(r)
  :: else -> assert(decided[n] == gate[r].version * 16 + STRUCTURE(r))
  fi
}

proctype Issuing(byte r) {
  byte n = 0;
  do
  :: n < CALLS && !dead[r] ->
    gate[r].calls = n + 1; /* Begin */
    if
    :: dead[r] -> break
    :: atomic { !dead[r] && may_pass(r, n) -> TryPass(r, n); Decide(r, n) }
    fi;
#if VARIANT == 4
    passed[r]++;
#endif
    n++
  :: else -> break
  od
}

#if VARIANT == 4
proctype Stepping(byte r) {
end:
  do
  :: steps[r] < passed[r] -> steps[r]++
  od
}
#endif

/* Prepare arms the gate. Answer, the control thread's next step, reads the gate and sends the answer. */
#define may_prepare(r, a) (!dead[r] && member[r].pending == 0 && idle(r) && sent_prepare[a] && a > member[r].heard)
inline Prepare_(r, a) {
  member[r].heard = a;
#if VARIANT == 1
  gate[r].version = a
#elif VARIANT == 2
  Arm(r, boundary_of[a], a);
  gate[r].committed = 1
#elif VARIANT == 3
  member[r].pending = a
#else
  member[r].pending = a;
  Arm(r, boundary_of[a], a)
#endif
}
inline Answer(r, a) {
#if VARIANT == 1 || VARIANT == 2
  skip
#elif VARIANT == 3
  if
  :: atomic { gate[r].calls <= boundary_of[a] -> sent_pledge[a].by[r] = 1 };
     atomic { Arm(r, boundary_of[a], a); member[r].pledged = 1 }
  /* Refuse is not sent, because the leader may call off at any time. */
  :: atomic { gate[r].calls > boundary_of[a] -> Drop(r) }
  fi
#else
  if
  :: atomic { reached(r) -> Drop(r) }
  :: atomic { !reached(r) -> sent_pledge[a].by[r] = 1; member[r].pledged = 1 }
  fi
#endif
}

/* Ask and AnswerPeer: if a rank has not pledged attempt a, it may tell its peers at any time that a is off. In
   the code it does so when a peer asks. After that it never pledges a. Rank 0 answers as the leader, by its
   verdict. A peer that knows of a commit repeats the leader's verdict. */
#define may_call_off(r, a) (!dead[r] && r != 0 && sent_prepare[a] && member[r].pending != a && \
                            a > member[r].committed && !called_off[a])
inline AnswerPeer(r, a) {
#if VARIANT != 6
  if
  :: a > member[r].heard -> member[r].heard = a
  :: else
  fi;
#endif
  called_off[a] = 1
}

proctype Control(byte r) {
end:
  do
  :: atomic { may_prepare(r, 1) -> Prepare_(r, 1) }; Answer(r, 1)
  :: atomic { may_call_off(r, 1) -> AnswerPeer(r, 1) }
#if ATTEMPTS > 1
  :: atomic { may_prepare(r, 2) -> Prepare_(r, 2) }; Answer(r, 2)
  :: atomic { may_call_off(r, 2) -> AnswerPeer(r, 2) }
#endif
  /* ApplyVerdict */
  :: atomic { !dead[r] && member[r].pledged && verdict_commit[member[r].pending] ->
       gate[r].committed = 1;
       member[r].committed = member[r].pending;
       member[r].pending = 0;
       member[r].pledged = 0 }
  :: atomic { !dead[r] && member[r].pledged &&
              (verdict_abort[member[r].pending] || called_off[member[r].pending]) -> Drop(r) }
#if VARIANT == 5
  :: atomic { !dead[r] && member[r].pledged && reached(r) -> Drop(r) }
#endif
  od
}

#if RANKS > 2
#define all_pledged(a) (sent_pledge[a].by[0] && sent_pledge[a].by[1] && sent_pledge[a].by[2])
#else
#define all_pledged(a) (sent_pledge[a].by[0] && sent_pledge[a].by[1])
#endif

/* SwitchLeader. The boundary may lie anywhere, because its distance only sets how often an attempt fails. The
   leader may call off the attempt at any time: for a refusal, a time-out, a lost rank or a revocation. */
proctype Leader() {
  byte attempt = 0;
  byte e;
  do
  :: attempt < ATTEMPTS && !dead[0] ->
    atomic {
      attempt++;
      select (e : 0 .. CALLS - 1);
      boundary_of[attempt] = e;
      sent_prepare[attempt] = 1
    };
    if
    :: atomic { !dead[0] && all_pledged(attempt) -> verdict_commit[attempt] = 1 }
#if VARIANT == 7
    :: !dead[0] -> skip
#else
    :: atomic { !dead[0] -> verdict_abort[attempt] = 1 }
#endif
    :: dead[0] -> break
    fi
  :: else -> break
  od
}

#ifdef CRASH
proctype Death() {
  if
  :: dead[0] = 1
  :: dead[1] = 1
  fi;
  aborted = 1
}
#endif

init {
  byte i;
  atomic {
    for (i : 0 .. CALLS - 1) { decided[i] = UNDECIDED }
    for (i : 0 .. RANKS - 1) {
      gate[i].boundary = NEVER;
      run Issuing(i);
      run Control(i);
#if VARIANT == 4
      run Stepping(i);
#endif
    }
    run Leader();
#ifdef CRASH
    run Death();
#endif
  }
}

/* The model must not be vacuous: with -DSHOW_COMMIT spin must find a run that switches in the middle. */
#ifdef SHOW_COMMIT
never {
  do
  :: assert(!(decided[0] == 0 && decided[CALLS - 1] == 16))
  od
}
#endif
