package oom

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const details = " total-vm:26852kB, anon-rss:15808kB, file-rss:1520kB, shmem-rss:0kB, UID:0 pgtables:80kB oom_score_adj:999"

func TestParseKills(t *testing.T) {
	cgroup := "/kubepods/burstable/pod1/c1"
	for name, c := range map[string]struct {
		log  string
		want []kill
	}{
		"machine out of memory": {`
stress invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=1000
CPU: 0 UID: 0 PID: 60 Comm: stress Not tainted 6.12.0 #1
Mem-Info:
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=` + cgroup + `,task=stress,pid=60,uid=0
Out of memory: Killed process 60 (stress)` + details + `
oom_reaper: reaped process 60 (stress), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB`,
			[]kill{{process: "stress", pid: 60, cgroup: cgroup, system: true}}},
		"cgroup at its limit": {`
sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999
memory: usage 16384kB, limit 16384kB, failcnt 25
Memory cgroup stats for ` + cgroup + `:
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=/kubepods/burstable/pod1,task_memcg=` + cgroup + `,task=sh,pid=24699,uid=0
Memory cgroup out of memory: Killed process 24699 (sh)` + details,
			[]kill{{process: "sh", pid: 24699, cgroup: cgroup}}},
		"cpuset out of memory": {`
oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=/x,mems_allowed=0,global_oom,task_memcg=/,task=a,pid=5,uid=0
Out of memory: Killed process 5 (a)` + details,
			[]kill{{process: "a", pid: 5, cgroup: "/", system: true}}},
		"kernel without memory cgroups": {`
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,task=a,pid=5,uid=0
Out of memory: Killed process 5 (a)` + details,
			[]kill{{process: "a", pid: 5, system: true}}},
		"oom_kill_allocating_task": {`
Out of memory (oom_kill_allocating_task): Killed process 5 (a)` + details,
			[]kill{{process: "a", pid: 5, system: true}}},
		"many kills with short messages": {`
Memory cgroup out of memory: Killed process 5 (a)` + details + `
Out of memory: Killed process 6 (b)` + details + `
Out of memory: Killed process 7 (c)` + details,
			[]kill{{process: "a", pid: 5}, {process: "b", pid: 6, system: true}, {process: "c", pid: 7, system: true}}},
		"memory.oom.group": {`
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/g,task=a,pid=5,uid=0
Out of memory: Killed process 5 (a)` + details + `
Tasks in /g are going to be killed due to memory.oom.group set
Out of memory: Killed process 5 (a)` + details + `
Out of memory: Killed process 6 (b)` + details + `
c invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
Out of memory: Killed process 7 (c)` + details,
			[]kill{{process: "a", pid: 5, cgroup: "/g", system: true}, {process: "c", pid: 7, system: true}}},
		"machine out of memory after memory.oom.group, with short messages": {`
Memory cgroup out of memory: Killed process 5 (a)` + details + `
Tasks in /g are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 5 (a)` + details + `
Memory cgroup out of memory: Killed process 6 (b)` + details + `
Out of memory: Killed process 7 (c)` + details + `
Memory cgroup out of memory: Killed process 8 (d)` + details,
			[]kill{{process: "a", pid: 5}, {process: "c", pid: 7, system: true}, {process: "d", pid: 8}}},
		"process and cgroup names with separators": {`
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,b,task=x,pid=1,uid=2,pid=8,uid=0
Out of memory: Killed process 8 (x) (y) z)` + details,
			[]kill{{process: "x) (y) z", pid: 8, cgroup: "/a,b", system: true}}},
		"kernel before 5.2": {`
a invoked oom-killer: gfp_mask=0x6280ca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO), nodemask=(null), order=0, oom_score_adj=0
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/g,task=a,pid=5,uid=0
Out of memory: Kill process 5 (a) score 900 or sacrifice child
Killed process 5 (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Memory cgroup out of memory: Kill process 6 (b) score 900 or sacrifice child
Killed process 6 (b) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB`,
			[]kill{{process: "a", pid: 5, cgroup: "/g", system: true}, {process: "b", pid: 6}}},
		"no process is killed": {`
a invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-1000
Out of memory and no killable processes...
Out of memory: OOM victim 5 (a) is already exiting. Skip killing the task
Killed process
Out of memory: Killed process x (a)
Out of memory: Killed process 5 ()
Out of memory: Killed process -5 (a)
xfs: Out of memory: Killed process 5 (a)`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var f killParser
			var got []kill
			for line := range strings.Lines(c.log) {
				if k, ok := f.read(strings.TrimSuffix(line, "\n")); ok {
					got = append(got, k)
				}
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(kill{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRecord(t *testing.T) {
	for in, want := range map[string]*record{
		"3,1208,33361107773,-;Out of memory\n":                           {1208, "Out of memory"},
		"6,1,2,-,caller=T1;usb 1: new\n SUBSYSTEM=usb\n DEVICE=+usb:1\n": {1, "usb 1: new"},
		"4,18446744073709551615,0,c;":                                    {1<<64 - 1, ""},
		"12,7,2,-;Out of memory: Killed process 5 (a)\n":                 nil, // written by a program
		"3,1,2;a;b":  {1, "a;b"},
		"3,1,-":      nil,
		"3,1;a":      nil,
		"3,-1,2,-;a": nil,
		"x,1,2,-;a":  nil,
		"":           nil,
	} {
		got, ok := parseRecord([]byte(in))
		if ok != (want != nil) || ok && got != *want {
			t.Errorf("%q: got %+v, %t", in, got, ok)
		}
	}
}

// Parts of the kernel log are names that programs choose.
func FuzzKernelLog(f *testing.F) {
	f.Add([]byte("3,1,2,-;Out of memory: Killed process 5 (a)" + details + "\n"))
	f.Add([]byte("6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=a,pid=5,uid=0\n SUBSYSTEM=x\n"))
	f.Add([]byte("6,1,2,-;a invoked oom-killer: \n"))
	f.Add([]byte("6,1,2,-;Killed process 5 (a)\x003,1,2,-;Tasks in / are going to be killed due to memory.oom.group set"))
	f.Fuzz(func(t *testing.T, log []byte) {
		var parser killParser
		for part := range strings.SplitSeq(string(log), "\x00") {
			r, ok := parseRecord([]byte(part))
			if !ok {
				continue
			}
			if k, ok := parser.read(r.text); ok && (k.pid <= 0 || k.process == "" || strings.ContainsAny(k.process, "\n")) {
				t.Errorf("%q: not a process: %+v", part, k)
			}
		}
	})
}
