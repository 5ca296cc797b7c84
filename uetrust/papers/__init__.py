"""Papers: the printed numbers, claims and released data of five papers, the same studies on own runs, and the
studies of bulletins and of judgements by people."""
