package oom

import (
	"strconv"
	"strings"
)

// kill is a process that the kernel has killed for want of memory.
type kill struct {
	process string
	pid     int
	// group is the victim's; "" where the kernel did not tell.
	group string
	// system is that the machine, not a group of its, had no memory left.
	system bool
}

// How the kernel begins its last word on a victim. Another may stand between it and the
// colon, such as (oom_kill_allocating_task).
const (
	ofSystem = "Out of memory"
	ofGroup  = "Memory cgroup out of memory"
)

// finder puts together what the kernel says of one kill in several messages:
//
//	sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999
//	oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=sh,pid=7,uid=0
//	Memory cgroup out of memory: Killed process 7 (sh) total-vm:26852kB, anon-rss:15808kB, …
//
// All but the last are left out when there are many at a time.
type finder struct {
	// told is what the kernel said beforehand.
	told kill
	// others is that those killed next go with the one before, whose group dies as a whole.
	others bool
}

// read takes the next message, and tells whether it is of another kill.
func (f *finder) read(text string) (kill, bool) {
	switch {
	case strings.Contains(text, " invoked oom-killer: "):
		*f = finder{}
	case strings.HasPrefix(text, "oom-kill:"):
		*f = finder{told: parseVictim(text)}
	case strings.HasPrefix(text, "Tasks in ") && strings.HasSuffix(text, " are going to be killed due to memory.oom.group set"):
		f.others = true
	default:
		return f.readKill(text)
	}
	return kill{}, false
}

func (f *finder) readKill(text string) (kill, bool) {
	why, victim, found := strings.Cut(text, "Killed process ")
	switch {
	case strings.HasPrefix(text, ofGroup+": Kill process "): // before 5.2 the last word is without it
		f.told.system = false
	case strings.HasPrefix(text, ofSystem+": Kill process "):
		f.told.system = true
	case !found:
	case why == "":
		return f.end(victim, f.told.system)
	case strings.HasPrefix(why, ofSystem):
		return f.end(victim, true)
	case strings.HasPrefix(why, ofGroup):
		return f.end(victim, false)
	}
	return kill{}, false
}

// end reads the last word on a victim: 7 (sh) total-vm:26852kB, anon-rss:15808kB, …
func (f *finder) end(victim string, system bool) (kill, bool) {
	number, rest, _ := strings.Cut(victim, " (")
	pid, err := strconv.Atoi(number)
	end := strings.LastIndex(rest, ") total-vm:") // a process may have brackets in its name
	if end < 0 {
		end = strings.LastIndexByte(rest, ')')
	}
	if err != nil || pid <= 0 || end <= 0 || f.others {
		return kill{}, false
	}
	k := kill{process: rest[:end], pid: pid, system: system}
	if f.told.pid == pid {
		k.group = f.told.group
	}
	*f = finder{}
	return k, true
}

// parseVictim reads which group the process to be killed is in. A kernel that says oom_memcg
// instead of global_oom kills because of that group's limit.
func parseVictim(text string) kill {
	var k kill
	text, _, _ = cutLast(text, ",uid=")
	text, pid, _ := cutLast(text, ",pid=")
	k.pid, _ = strconv.Atoi(pid)
	text, k.process, _ = cutLast(text, ",task=")
	text, k.group, _ = strings.Cut(text, ",task_memcg=")
	k.system = !strings.Contains(text, ",oom_memcg=")
	return k
}

func cutLast(text, mark string) (before, after string, found bool) {
	if i := strings.LastIndex(text, mark); i >= 0 {
		return text[:i], text[i+len(mark):], true
	}
	return text, "", false
}
