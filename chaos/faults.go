package main

// catalogue lists the faults that can befall so many nodes. What befalls single
// messages is there all the time, at a low rate; F14 makes it worse for a while.
func catalogue(nodes int) []fault {
	majority := nodes/2 + 1
	return []fault{
		{name: "F1 kill", weight: 3, nodes: 1, bad: true, forgets: true, keeps: true, do: kill},
		{name: "F2 kill and wipe", weight: 6, nodes: 1, bad: true, forgets: true, do: killAndWipe},
		{name: "F3 older data", weight: 4, nodes: 1, bad: true, forgets: true, do: olderData},
		{name: "F4 majority wiped", weight: 1, least: 3, nodes: majority, bad: true, forgets: true, alone: true, do: wipeAll},
		{name: "F5 rolling restart", weight: 1, least: 3, nodes: nodes, bad: true, forgets: true, alone: true, do: rolling},
		{name: "F6 flushed", weight: 3, nodes: 1, bad: true, forgets: true, steady: true, do: flush},
		{name: "F7 lagging replica promoted", weight: 3, nodes: 1, bad: true, forgets: true, do: promote},
		{name: "F8 resync from another", weight: 3, nodes: 1, bad: true, forgets: true, do: resync},
		{name: "F9 freeze", weight: 6, nodes: 1, bad: true, do: freeze},
		{name: "F10 majority frozen", weight: 1, least: 3, nodes: majority, bad: true, alone: true, do: freeze},
		{name: "F11 client paused", weight: 8, clients: true, do: pauseClient},
		{name: "F12 client paused at a message", weight: 8, clients: true, do: trapPause},
		{name: "F13 client killed", weight: 3, clients: true, do: killClient},
		{name: "F13 client killed at a message", weight: 4, clients: true, do: trapKill},
		{name: "F14 bad line", weight: 8, clients: true, do: lossy},
		{name: "F17 slow node", weight: 4, nodes: 1, bad: true, do: slow},
		{name: "F18 node cut off", weight: 4, nodes: 1, bad: true, do: cutNode},
		{name: "F18 client cut off", weight: 5, clients: true, do: cutClient},
		{name: "F19 one way", weight: 4, nodes: 1, bad: true, do: oneWay},
		{name: "F20 bridging partition", weight: 3, least: 5, clients: true, do: bridge},
		{name: "F20 bridge and wipe", weight: 3, least: 5, nodes: 1, bad: true, forgets: true, alone: true, clients: true, do: bridgeAnd(killAndWipe)},
		{name: "F20 bridge and flush", weight: 2, least: 5, nodes: 1, bad: true, forgets: true, alone: true, steady: true, do: bridgeAnd(flush)},
		{name: "F21 clock ahead", weight: 2, nodes: 1, bad: true, forgets: true, steady: true, clock: true, do: clockAhead},
		{name: "F22 clock back and forth", weight: 2, nodes: 1, bad: true, forgets: true, steady: true, clock: true, do: clockBack},
		{name: "F23 clock drifts by 0.4 %", weight: 3, nodes: 1, clock: true, do: drift(0.004)},
		{name: "F23 clock drifts by 5 %", weight: 2, nodes: 1, bad: true, forgets: true, steady: true, clock: true, do: drift(0.05)},
		{name: "F23 clock stands still", weight: 2, nodes: 1, bad: true, forgets: true, steady: true, clock: true, do: standStill},
		{name: "F24 client suspended", weight: 4, clients: true, sleeps: true, do: suspendClient},
		{name: "F24 client suspended as it comes in", weight: 2, clients: true, sleeps: true, do: suspendHolder},
		{name: "F25 killed while it recovers", weight: 1, nodes: 1, bad: true, forgets: true, do: killTwice},
		{name: "F26 connections killed", weight: 4, nodes: 1, do: killConnections},
		{name: "F26 too many clients", weight: 2, nodes: 1, bad: true, do: crowd},
		{name: "F27 out of memory", weight: 3, nodes: 1, bad: true, do: outOfMemory},
		{name: "F27 busy script", weight: 3, nodes: 1, bad: true, do: busy},
		{name: "F27 scripts flushed", weight: 4, nodes: 1, do: flushScripts},
		{name: "F6 majority flushed", weight: 3, least: 3, nodes: majority, forgets: true, beyond: true, do: flush},
		{name: "locks deleted by hand", weight: 3, nodes: majority, beyond: true, do: deleteLocks},
		{name: "F21 clocks of a majority ahead", weight: 3, least: 3, nodes: majority, forgets: true, beyond: true, clock: true, do: clockAhead},
		{name: "F23 clocks of a majority drift by 5 %", weight: 3, least: 3, nodes: majority, forgets: true, beyond: true, clock: true, do: drift(0.05)},
		{name: "F23 clocks of a majority stand still", weight: 3, least: 3, nodes: majority, forgets: true, beyond: true, clock: true, do: standStill},
	}
}
