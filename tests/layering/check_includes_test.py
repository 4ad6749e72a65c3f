#!/usr/bin/env python3
"""check_includes finds each kind of violation in a small made-up tree."""

import pathlib
import tempfile
import unittest

import check_includes


class CheckIncludes(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_includes.check(root)

    def test_downward_include_is_allowed(self):
        self.assertEqual([], self.check({
            "server/api/a.cc": '#include "server/scheduler/s.h"\n',
            "server/scheduler/s.h": '#include "server/engine/step_runner.h"\n',
            "server/engine/step_runner.h": "\n",
        }))

    def test_upward_include_is_refused(self):
        self.assertEqual(
            ["server/scheduler/s.h: may not include server/rpc/a.h"],
            self.check({
                "server/scheduler/s.h": '#include "server/rpc/a.h"\n',
                "server/rpc/a.h": "\n",
            }))

    def test_scheduler_sees_only_the_runner_interface(self):
        errors = self.check({
            "server/scheduler/s.h":
                '#include "server/engine/torch_step_runner.h"\n',
            "server/engine/torch_step_runner.h": "\n",
        })
        self.assertEqual(["server/scheduler/s.h: may not include "
                          "server/engine/torch_step_runner.h"], errors)

    def test_rpc_sees_no_tensor(self):
        errors = self.check({
            "server/api/a.cc": '#include "model/checkpoint/weights.h"\n',
            "model/checkpoint/weights.h": "\n",
        })
        self.assertEqual(1, len(errors))

    def test_model_includes_no_server(self):
        errors = self.check({
            "model/text/a.cc": '#include "server/base/clock.h"\n',
            "server/base/clock.h": "\n",
        })
        self.assertEqual(1, len([e for e in errors if "may not" in e]))

    def test_the_steps_of_two_devices_do_not_know_each_other(self):
        errors = self.check({
            "model/cuda/step/a.cc": '#include "model/cpu/b.h"\n',
            "model/cpu/b.h": "\n",
        })
        self.assertEqual(
            ["model/cuda/step/a.cc: may not include model/cpu/b.h"], errors)

    def test_a_folder_without_a_rule_may_include_nothing(self):
        errors = self.check({
            "model/a.cc": '#include "model/base/b.h"\n',
            "model/base/b.h": "\n",
        })
        self.assertEqual(["model/a.cc: may not include model/base/b.h"],
                         errors)

    def test_client_knows_only_the_api(self):
        errors = self.check({
            "client/a.cc": '#include "txl/v1/generation_service.pb.h"\n'
                           '#include "model/text/vocabulary.h"\n',
            "model/text/vocabulary.h": "\n",
        })
        self.assertEqual(
            ["client/a.cc: may not include model/text/vocabulary.h"], errors)

    def test_file_cycle_is_found(self):
        errors = self.check({
            "model/text/a.h": '#include "model/text/b.h"\n',
            "model/text/b.h": '#include "model/text/a.h"\n',
        })
        self.assertEqual(["cycle of files: model/text/a -> model/text/b -> "
                          "model/text/a"], errors)

    def test_a_private_implementation_header_is_no_cycle(self):
        self.assertEqual([], self.check({
            "model/text/a.h": "\n",
            "model/text/a_impl.h": '#include "model/text/a.h"\n',
            "model/text/a.cc": '#include "model/text/a.h"\n'
                               '#include "model/text/a_impl.h"\n',
        }))

    def test_folder_cycle_is_found(self):
        errors = self.check({
            "client/cli/a.h": '#include "client/call/b.h"\n',
            "client/call/b.h": "\n",
            "client/call/c.h": '#include "client/cli/d.h"\n',
            "client/cli/d.h": "\n",
        })
        self.assertEqual(["cycle of folders: client/call -> client/cli -> "
                          "client/call"], errors)

    def test_missing_file_is_found(self):
        self.assertEqual(["model/text/a.cc: no such file: model/text/b.h"],
                         self.check({"model/text/a.cc":
                                     '#include "model/text/b.h"\n'}))


if __name__ == "__main__":
    unittest.main()
