// SPDX-License-Identifier: Apache-2.0
// Holds what one thread is issuing on one communicator right now. Here the interposer and the tuner meet:
// NCCL calls the tuner in the middle of the interposed call. The interposer (plugin/interpose/call_stream.cc)
// fills in an IssuedGroup before it calls the library. The library asks the tuner
// (plugin/tuner/tuner_session.cc) on the same thread; the tuner reads these facts and leaves marks. When the
// library has returned, the interposer reads the marks.
//
// The group lives in its thread's IssuingThread while the library's function runs. No other thread sees it,
// so no member needs a lock. If the library asks on its own thread, as for non-blocking communicators, the
// tuner finds no group and decides without these facts.
#pragma once

#include <array>
#include <cstdint>

#include "plugin/runtime/communicator.h"
#include "src/collective/collective.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// The tuner's marks for the interposer: which questions the library asked. The tuner writes them at each
// question; the interposer reads them when the library has accepted the group.
struct TunerMarks {
  // Number of the tuner's decisions about this group in the trace. Only the tuner uses it, to number its
  // records.
  uint16_t questions = 0;
  // One bit for each tunable collective that the library asked about. The interposer derives from these bits
  // whether a tuner could change the calls.
  uint8_t asked = 0;
  // One bit for each collective in `asked` for which NCCL offered more than one configuration.
  uint8_t had_choice = 0;
  // The size class that the library asked about, for bits set in `asked`. The tuner writes it only for a
  // communicator that reports times; the interposer stores it in SizeClassPredictor for the next similar
  // group.
  std::array<SizeClass, kTunableCollectives> asked_about{};
};

// The group on one communicator; the top of this file has its owner and lifetime.
struct IssuedGroup {
  // The communicator of this group. The interposer sets it when it numbers the group's first call on this
  // communicator.
  Communicator* communicator = nullptr;
  // Call number, operands, and whether the group is simulated or configured by the program. The interposer
  // completes them before the library's call. The tuner reads them at each question, and its choice depends
  // on no other member.
  GroupFacts facts;
  // Number of collectives that move data on this communicator. The interposer counts them while it numbers
  // the group; the tuner writes the number into its trace records.
  uint16_t n_collectives = 0;
  // Number of sends, receives, and calls of no bytes. The interposer counts them, and only it reads them.
  uint16_t n_others = 0;
  // The group has work that all ranks issue, so it gets its own call number. The interposer writes it while
  // it numbers the group, and reads it to enter the table and to advance the call number.
  bool counts = false;
  // One of the group's calls is to be timed. The interposer writes it while it numbers the group, or for a
  // lone call right after that; the tuner passes it to the guard.
  bool timed = false;
  // The call is timed only because of a suspicion, so its time is no fair sample. Written and read like
  // `timed`.
  bool on_suspicion = false;
  // One of the group's calls is stamped, as the first of a step. Written and read like `timed`.
  bool stamped = false;
  // One of the group's calls is captured into a CUDA graph. The interposer writes it while it numbers the
  // group, if traces, metrics or a guard use single calls; the tuner passes it to the guard.
  bool captured = false;
  // Number of calls of each tunable collective. The interposer counts them while it numbers the group; the
  // tuner tells the guard how many events to expect.
  std::array<uint16_t, kTunableCollectives> collectives{};
  // The table that decides this group. The interposer sets it after it has numbered all calls; the tuner uses
  // it. A null engine means NCCL's choice, or a communicator that has only one table.
  VersionedTable table;
  // Written by the tuner.
  TunerMarks marks;
};

}  // namespace dynamiccl
