"""The pages of a class: feedback for each student, full reports and a summary for the teacher, a csv."""
