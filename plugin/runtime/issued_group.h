// SPDX-License-Identifier: Apache-2.0
// What one thread is issuing on one communicator right now: the meeting place of the two doors that NCCL
// opens into this object. The interposer (plugin/interpose/call_stream.cc) fills an IssuedGroup in before it
// calls the library. The library asks the tuner (plugin/tuner/tuner_session.cc) about it on the same thread,
// which reads these facts and leaves marks. When the library has returned, the interposer reads the marks.
//
// The group lives in its thread's IssuingThread, from the library's call to its return, and nobody else sees
// it: no member needs a lock. Where the library asks on a thread of its own, as for communicators that are
// not blocking, there is no group to be found, and the tuner decides without what only it knows.
#pragma once

#include <array>
#include <cstdint>

#include "plugin/runtime/communicator.h"
#include "src/collective/collective.h"
#include "src/collective/size_class.h"

namespace dynamiccl {

// What the tuner leaves for the interposer: which questions the library asked. The tuner writes it at each
// question; the interposer reads it once the library has taken the group.
struct TunerMarks {
  // Number of the tuner's decisions that a trace has of this group; the tuner numbers its records by it, and
  // nobody else reads it.
  uint16_t questions = 0;
  // A bit for each tunable collective that the library asked about. The interposer derives coverage from it.
  uint8_t asked = 0;
  // A bit for each of these for which more than one configuration was offered; read beside `asked`.
  uint8_t had_choice = 0;
  // The size class that was asked about, where `asked` has a bit. The tuner writes it only for a communicator
  // that tells times; the interposer keeps it in ExpectedSizeClass, for the next group like this one.
  std::array<SizeClass, kTunableCollectives> asked_about{};
};

struct IssuedGroup {
  // Whose part of the group this is. The interposer sets it when it numbers the group's first call there.
  Communicator* communicator = nullptr;
  // Call number, operands, and whether it is simulated or configured by the program. The interposer completes
  // them before the library's call; the tuner reads them at each question, and chooses nothing by other
  // facts.
  GroupFacts facts;
  // Collectives that move data, on this communicator. The interposer counts them while it numbers the group;
  // the tuner writes the number into its trace records.
  uint16_t n_collectives = 0;
  // Sends, receives, and calls of no bytes. The interposer counts them likewise, and alone reads them.
  uint16_t n_others = 0;
  // It has work that all ranks issue, so that it has a call number of its own. The interposer writes it while
  // it numbers the group, and reads it to enter the table and to advance the number.
  bool counts = false;
  // One of its calls is to be timed. The interposer writes it while it numbers the group, for a lone call
  // right after that; the tuner tells the guard.
  bool timed = false;
  // The timing was ordered for a suspicion alone, so that its times are no fair sample. As `timed`.
  bool on_suspicion = false;
  // One of its calls is captured into a CUDA graph. The interposer writes it while it numbers the group,
  // where somebody accounts for calls; the tuner tells the guard.
  bool captured = false;
  // Calls of each tunable collective. The interposer counts them while it numbers the group; the tuner tells
  // the guard how many events to expect.
  std::array<uint16_t, kTunableCollectives> collectives{};
  // The table that decides this group. The interposer takes it at the group's boundary, once all are
  // numbered; the tuner asks it. No engine: NCCL's choice, or a communicator that has one table only.
  VersionedTable table;
  // The tuner's part.
  TunerMarks marks;
};

}  // namespace dynamiccl
