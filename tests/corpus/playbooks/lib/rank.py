result = sorted(rows, key=lambda row: -row["score"])
