package cgroup

import (
	"fmt"
	"testing"
)

func TestGroups(t *testing.T) {
	for driver, want := range map[Driver][]string{
		Cgroupfs: {"/kubepods", "/kubepods/burstable", "/kubepods/podu-1 u-1", "/kubepods/burstable/podu-2 u-2"},
		Systemd: {"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-podu_1.slice u-1",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_2.slice u-2"},
	} {
		var dirs []string
		for _, g := range want {
			var dir, uid string
			fmt.Sscan(g, &dir, &uid)
			dirs = append(dirs, dir)
		}
		root := fakeV2(t, dirs...) // without the cgroup of best effort pods, which does not exist yet
		tree := testTree(t, Config{Driver: driver}, Hierarchy{Version: 2, Mounts: map[string]string{"": root}})
		groups, err := tree.Groups()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range groups {
			text := g.Path
			if g.Pod != "" {
				text += " " + string(g.Pod)
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", driver, got, want)
		}
	}
}
